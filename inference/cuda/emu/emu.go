//go:build cuda

// Package emu runs the CUDA kernels on the host, for tests on machines without a device: the very sources that become
// PTX, compiled by the host's C++ compiler, with threads, barriers and matrix products in software.
package emu

// #cgo CXXFLAGS: -std=c++17 -O2 -Wno-unknown-pragmas
// #include <stdint.h>
// #include <stdlib.h>
// int nvcodec_emu_launch(int family, const char *, int grid, int threads, int shared, const uint64_t *, int count, int backwards);
import "C"

import (
	"embed"
	"fmt"
	"sync"
	"syscall"
	"unsafe"
)

//go:embed source_*.h
var sources embed.FS

// Source says from which sources a module is compiled in, as the header of its PTX does.
func Source(module string) string {
	text, err := sources.ReadFile("source_" + module + ".h")
	if err != nil {
		return ""
	}
	return string(text)
}

// One launch at a time: a block's state and its shared memory are global.
var mu sync.Mutex

// Launch runs a kernel of a family (61, 75, 80), or else of the next lower one that has it, as a device does, over a
// grid of blocks of so many threads with so many bytes of dynamic shared memory. backwards turns the order of blocks
// and threads round.
func Launch(family int, kernel string, grid, threads, shared int, args []uint64, backwards bool) error {
	mu.Lock()
	defer mu.Unlock()
	name := C.CString(kernel)
	defer C.free(unsafe.Pointer(name))
	values, n, back := (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(args))), C.int(len(args)), C.int(0)
	if backwards {
		back = 1
	}
	code := C.int(-1)
	for _, f := range []int{90, 80, 75, 61} {
		if f <= family && code == -1 {
			code = C.nvcodec_emu_launch(C.int(f), name, C.int(grid), C.int(threads), C.int(shared), values, n, back)
		}
	}
	switch code {
	case 0:
		return nil
	case -1:
		return fmt.Errorf("emu: no kernel %s", kernel)
	case -2:
		return fmt.Errorf("emu: %s launched with %d parameters, which is not what it takes", kernel, len(args))
	case -4:
		return fmt.Errorf("emu: %s: no grid of %d blocks with %d threads and %d bytes", kernel, grid, threads, shared)
	}
	return fmt.Errorf("emu: threads of %s wait for each other", kernel)
}

const align, page = 256, 4096

// Alloc returns memory that ends where a page begins that nothing may touch, so that reads and writes behind it (but
// for less than 256 bytes of alignment) end the program.
func Alloc(n int) ([]byte, error) {
	size := (n + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return nil, err
	}
	if err := syscall.Mprotect(m[size:], syscall.PROT_NONE); err != nil {
		return nil, err
	}
	at := size - (n+align-1)/align*align
	mapped.Store(&m[at], m)
	return m[at:][:n:n], nil
}

var mapped sync.Map // first byte handed out → the whole mapping

// Free gives back what Alloc returned.
func Free(b []byte) error {
	m, ok := mapped.LoadAndDelete(unsafe.SliceData(b))
	if !ok {
		return fmt.Errorf("emu: free of memory that Alloc did not return")
	}
	return syscall.Munmap(m.([]byte))
}
