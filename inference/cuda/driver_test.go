//go:build cuda

package cuda

import (
	"errors"
	"testing"
)

func TestX(t *testing.T) {
	n, err := count()
	var a *AbsentError
	t.Log(n, err, errors.As(err, &a))
}
