//go:build cuda

// Package emu runs the CUDA kernels on the host, for tests on machines without a device: the very sources that become
// PTX, compiled by the host's C++ compiler, with threads, barriers and matrix products in software.
package emu

// #cgo CXXFLAGS: -std=c++17 -O2 -Wno-unknown-pragmas
// #include <stdint.h>
// #include <stdlib.h>
// int nvcodec_emu_launch_61(const char *, int, const uint64_t *, int, int);
// int nvcodec_emu_launch_75(const char *, int, const uint64_t *, int, int);
// int nvcodec_emu_launch_80(const char *, int, const uint64_t *, int, int);
// #include "source.h"
import "C"

import (
	"fmt"
	"sync"
	"syscall"
	"unsafe"
)

// Source is the SHA-256 of the kernels' sources that are compiled in, as the header of the PTX names it.
const Source = C.NVCODEC_SOURCE

// One launch at a time: a block's state and its shared memory are global.
var mu sync.Mutex

// Launch runs a kernel of a family (61, 75, 80) over a grid of blocks of 256 threads. backwards turns the order of
// blocks and threads round.
func Launch(family int, kernel string, grid int, args []uint64, backwards bool) error {
	mu.Lock()
	defer mu.Unlock()
	name := C.CString(kernel)
	defer C.free(unsafe.Pointer(name))
	values, n, back := (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(args))), C.int(len(args)), C.int(0)
	if backwards {
		back = 1
	}
	var code C.int
	switch family {
	case 61:
		code = C.nvcodec_emu_launch_61(name, C.int(grid), values, n, back)
	case 75:
		code = C.nvcodec_emu_launch_75(name, C.int(grid), values, n, back)
	case 80:
		code = C.nvcodec_emu_launch_80(name, C.int(grid), values, n, back)
	default:
		return fmt.Errorf("emu: no family %d", family)
	}
	switch code {
	case 0:
		return nil
	case -1:
		return fmt.Errorf("emu: no kernel %s", kernel)
	case -2:
		return fmt.Errorf("emu: %s launched with %d parameters, which is not what it takes", kernel, len(args))
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
