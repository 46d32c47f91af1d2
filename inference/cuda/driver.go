//go:build cuda

package cuda

// #cgo LDFLAGS: -ldl
// extern char nvcodec_cuda_absent[256];
import "C"

import (
	"fmt"

	"gorgonia.org/cu"
)

// An AbsentError says why this machine has no CUDA device to compute on.
type AbsentError struct{ Reason string }

func (e *AbsentError) Error() string { return "cuda: no device: " + e.Reason }

// count returns how many devices there are, or an AbsentError when there are none.
func count() (int, error) {
	if reason := C.GoString(&C.nvcodec_cuda_absent[0]); reason != "" {
		return 0, &AbsentError{reason}
	}
	n, err := cu.NumDevices()
	if err != nil {
		return 0, &AbsentError{fmt.Sprintf("the driver says: %v", err)}
	}
	if n == 0 {
		return 0, &AbsentError{"the driver knows none"}
	}
	return n, nil
}
