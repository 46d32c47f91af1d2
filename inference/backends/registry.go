// Package backends knows what this build can compute on, reads a user's choice of it, and shares devices out between
// jobs: each job gets one that has the memory it needs.
//
// The CPU is always there. Packages of other devices register themselves when a program imports them.
package backends

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/nvcodec/nvcodec/inference"
)

// A Kind is one sort of device beside the CPU.
type Kind struct {
	Name    string   // "cuda": its devices are "cuda:0", "cuda:1"
	Kernels []string // families of kernels, the weakest first

	// Devices lists what there is, by ordinal, and starts none of it; the error says why there is nothing.
	Devices func() ([]Device, error)
	// Free returns how many bytes of a device's memory nobody has taken.
	Free func(ordinal int) (int64, error)
	// Open makes one device ready. Kernels is one of the kind's or "auto".
	Open func(ordinal int, kernels string) (Backend, error)
	// Memory estimates what a job takes; it needs no device.
	Memory func(j *Job) (Memory, error)
}

// A Backend computes on one device. Jobs on it may run at the same time.
type Backend interface {
	inference.Backend
	// Free returns how many bytes of the device's memory nobody has taken.
	Free() (int64, error)
	// Close gives the device back; nothing may use it any more.
	Close() error
}

// A Job is one video to encode or decode.
type Job struct {
	Name     string // for errors: the file
	Model    *inference.Model
	W, H     int // of the pictures
	Encode   bool
	InFlight int  // frames in flight; 0: as many as a device wants
	Reach    int  // encoder: of the motion search
	Pictures bool // encoder: decoded pictures come back
	NoWait   bool // do not wait for jobs that hold memory: one of them is the caller's own
}

// Memory is what a job takes, in bytes.
type Memory struct {
	Job    int64 // of the device, for itself
	Shared int64 // of the device, once for all jobs with the same model
	Host   int64 // page-locked
}

// A Device is what devices are described by.
type Device struct {
	ID         string   `json:"device"` // "cpu", "cuda:0"
	Name       string   `json:"name"`
	Capability string   `json:"capability,omitempty"` // "9.0"
	Memory     int64    `json:"memory_bytes,omitempty"`
	Free       int64    `json:"free_bytes,omitempty"`
	Driver     string   `json:"driver,omitempty"`
	Problem    string   `json:"problem,omitempty"`         // why it cannot be used
	Kernels    []string `json:"kernels"`                   // that it runs, the weakest first
	Default    string   `json:"default_kernels,omitempty"` // what auto takes; nothing when it runs none
}

var kinds []*Kind

// Register adds a kind; packages of devices call it as they are initialised.
func Register(k *Kind) { kinds = append(kinds, k) }

// Kinds returns the names of what this build knows, the CPU first.
func Kinds() []string {
	names := []string{"cpu"}
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

// Kernels returns the names of all kernels that this build has, those of this machine's CPU first.
func Kernels() []string {
	names := cpuKernels()
	for _, k := range kinds {
		names = append(names, k.Kernels...)
	}
	return names
}

// Devices lists what there is, the CPU first, and for each kind without a device why there is none.
func Devices() (all []Device, absent map[string]string) {
	all = []Device{{ID: "cpu", Name: fmt.Sprintf("%s, %d threads", runtime.GOARCH, runtime.GOMAXPROCS(0)), Kernels: cpuKernels()}}
	all[0].Default = all[0].Kernels[len(all[0].Kernels)-1]
	absent = map[string]string{}
	for _, k := range kinds {
		found, err := k.Devices()
		if err != nil {
			absent[k.Name] = err.Error()
			continue
		}
		for i := range found {
			if free, err := k.Free(i); err == nil {
				found[i].Free = free
			} else {
				found[i].Problem = err.Error()
			}
		}
		all = append(all, found...)
	}
	return all, absent
}

func cpuKernels() []string {
	var names []string
	for _, b := range inference.Backends() {
		names = append(names, b.Kernels())
	}
	return names
}

func kindOfKernels(name string) *Kind {
	for _, k := range kinds {
		if slices.Contains(k.Kernels, name) {
			return k
		}
	}
	return nil
}
