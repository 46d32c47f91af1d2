//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// The umask can only be read by setting it, which is process-wide: done once, early and behind a lock.
var umask = sync.OnceValue(func() fs.FileMode {
	m := syscall.Umask(0o022)
	syscall.Umask(m)
	return fs.FileMode(m)
})

// syncDir makes a rename durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
