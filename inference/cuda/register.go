//go:build cuda

package cuda

import (
	"fmt"
	"os"
	"strings"

	"gorgonia.org/cu"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/backends"
)

func init() {
	backends.Register(&backends.Kind{
		Name: "cuda", Kernels: kernelNames(0),
		Devices: registered,
		Free:    freeMemory,
		Open: func(ordinal int, kernels string) (backends.Backend, error) {
			b, err := New(ordinal, kernels)
			if err != nil {
				return nil, err
			}
			return b, nil
		},
		Memory: func(j *backends.Job) (backends.Memory, error) {
			o := &inference.CodingOptions{Model: j.Model, W: j.W, H: j.H, InFlight: j.InFlight, Reach: j.Reach, Pictures: j.Pictures}
			if o.InFlight == 0 {
				o.InFlight = inference.DeviceInFlight
			}
			device, host, shared, err := CodingMemory(o, j.Encode)
			return backends.Memory{Job: device, Shared: shared, Host: host}, err
		},
	})
}

// kernelNames lists the families that a compute capability runs; for capability 0, all.
func kernelNames(capability int) []string {
	var names []string
	for _, sm := range families {
		if capability == 0 || runsOn(sm, capability) {
			names = append(names, familyName(sm))
		}
	}
	if capability == 0 || runsOn(fp16Family, capability) {
		names = append(names, fp16)
	}
	return names
}

func registered() ([]backends.Device, error) {
	found, err := Devices()
	if err != nil {
		return nil, err
	}
	all := make([]backends.Device, len(found))
	for i, d := range found {
		all[i] = backends.Device{
			ID: fmt.Sprintf("cuda:%d", d.Ordinal), Name: d.Name, Capability: fmt.Sprintf("%d.%d", d.Capability/10, d.Capability%10),
			Memory: d.Memory, Driver: driver(d.Driver), Kernels: kernelNames(d.Capability), Default: d.Kernels,
		}
	}
	return all, nil
}

// driver names the kernel's driver too where Linux tells it.
func driver(version int) string {
	s := fmt.Sprintf("CUDA %d.%d", version/1000, version%1000/10)
	if text, err := os.ReadFile("/sys/module/nvidia/version"); err == nil {
		s = strings.TrimSpace(string(text)) + ", " + s
	}
	return s
}

// Free returns how many bytes of the device's memory nobody has taken.
func (b *Backend) Free() (free int64, err error) {
	err = b.current(func() error {
		free, _, err = cu.MemInfo()
		return called("cuMemGetInfo", err)
	})
	return free, err
}

// freeMemory asks a device that may not be in use yet.
func freeMemory(ordinal int) (int64, error) {
	b := &Backend{}
	var err error
	if b.dev, err = cu.GetDevice(ordinal); err != nil {
		return 0, called("cuDeviceGet", err)
	}
	if b.context, err = b.dev.RetainPrimaryCtx(); err != nil {
		return 0, called("cuDevicePrimaryCtxRetain", err)
	}
	defer b.dev.ReleasePrimaryCtx()
	return b.Free()
}
