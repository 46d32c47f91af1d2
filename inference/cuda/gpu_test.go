//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// required reports whether this machine ought to have something: NVCODEC_REQUIRE names it.
func required(what string) bool {
	return slices.Contains(strings.Split(os.Getenv("NVCODEC_REQUIRE"), ","), what)
}

// eachDevice runs a test for every family that each device can run; without one it skips, or fails where there ought
// to be one.
func eachDevice(t *testing.T, test func(t *testing.T, b *backend)) {
	var names []string
	for _, sm := range families {
		names = append(names, familyName(sm))
	}
	eachDeviceWith(t, names, test)
}

// eachDeviceWith runs a test for each of these kernels that each device can run.
func eachDeviceWith(t *testing.T, names []string, test func(t *testing.T, b *backend)) {
	n, err := count()
	if err != nil {
		t.Run("impl=cuda", func(t *testing.T) {
			if required("cuda") {
				t.Fatal(err)
			}
			t.Skip(err)
		})
		return
	}
	for d := range n {
		for _, name := range names {
			t.Run(fmt.Sprintf("impl=cuda:%d/%s", d, name), func(t *testing.T) {
				b, err := New(d, name)
				var unfit *UnfitError
				if errors.As(err, &unfit) {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				test(t, b.backend)
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestAbsent: without a driver the package starts, counts no device and says why; with one it counts some.
func TestAbsent(t *testing.T) {
	n, err := count()
	var absent *AbsentError
	switch {
	case err == nil && n > 0:
		t.Logf("%d devices", n)
	case !errors.As(err, &absent) || absent.Reason == "":
		t.Errorf("%d devices, error %v: want an AbsentError with its reason", n, err)
	default:
		if _, err := New(0, "auto"); !errors.As(err, &absent) {
			t.Errorf("New without a device: %v", err)
		}
		if all, err := Devices(); len(all) != 0 || !errors.As(err, &absent) {
			t.Errorf("Devices without a device: %v, %v", all, err)
		}
		if required("cuda") {
			t.Fatal(err)
		}
	}
}
