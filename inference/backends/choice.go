package backends

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nvcodec/nvcodec/inference"
)

// A ChoiceError is a choice that has no meaning, whatever the machine.
type ChoiceError struct {
	Option, Value string // "device" or "kernels"
	Problem       string
}

func (e *ChoiceError) Error() string {
	return fmt.Sprintf("--%s %s: %s", e.Option, e.Value, e.Problem)
}

// An UnavailableError is a choice that this machine cannot serve.
type UnavailableError struct {
	Device string
	Err    error
}

func (e *UnavailableError) Error() string { return fmt.Sprintf("%s: %v", e.Device, e.Err) }
func (e *UnavailableError) Unwrap() error { return e.Err }

// Choose reads the options --device (auto, cpu, a kind for all of its devices, or devices joined by commas) and
// --kernels (auto, or the name of a kernel family). The pool opens devices when jobs come.
//
// auto is the first device of any kind that a job fits on, and the CPU where there is none.
func Choose(device, kernels string) (*Pool, error) {
	p := &Pool{changed: make(chan struct{}), kernels: kernels}
	if kernels == "" {
		p.kernels = "auto"
	}
	family := kindOfKernels(p.kernels)
	isCPU := slices.Contains(cpuKernels(), p.kernels)
	if _, err := inference.CPU(p.kernels); err != nil && family == nil {
		return nil, &ChoiceError{"kernels", kernels, fmt.Sprintf("%v (this build has %s)", err, strings.Join(Kernels(), ", "))}
	}
	switch {
	case device == "cpu" || (device == "auto" || device == "") && isCPU:
		if family != nil {
			return nil, &ChoiceError{"kernels", kernels, fmt.Sprintf("kernels of %s devices, not of the cpu", family.Name)}
		}
		return p, p.addCPU()
	case device == "auto" || device == "":
		return p, p.automatic(family)
	}
	if err := p.listed(device); err != nil {
		return nil, err
	}
	for _, d := range p.devices {
		if p.kernels != "auto" && family != d.kind {
			return nil, &ChoiceError{"kernels", kernels, fmt.Sprintf("not kernels of %s devices (%s)", d.kind.Name, strings.Join(d.kind.Kernels, ", "))}
		}
	}
	return p, nil
}

func (p *Pool) addCPU() (err error) {
	p.cpu, err = inference.CPU(p.kernels)
	return err
}

// automatic takes every device that has kernels, and the CPU behind them unless the kernels are a device's.
func (p *Pool) automatic(family *Kind) error {
	p.first = true
	for _, k := range kinds {
		if family != nil && k != family {
			continue
		}
		found, err := k.Devices()
		if err != nil {
			p.why = append(p.why, err.Error())
			if family != nil {
				return &UnavailableError{k.Name, err}
			}
		}
		for i, d := range found {
			switch {
			case len(d.Kernels) == 0:
				p.why = append(p.why, fmt.Sprintf("%s (%s) is too old for every kernel family", d.ID, d.Name))
			case family == nil || slices.Contains(d.Kernels, p.kernels):
				p.devices = append(p.devices, &device{id: d.ID, kind: k, ordinal: i})
			}
		}
	}
	if family == nil {
		return p.addCPU()
	}
	if len(p.devices) == 0 {
		return &UnavailableError{family.Name, errors.New("no device here runs kernels " + p.kernels)}
	}
	return nil
}

// listed takes the devices that are named.
func (p *Pool) listed(names string) error {
	for _, name := range strings.Split(names, ",") {
		kind, number, numbered := strings.Cut(strings.TrimSpace(name), ":")
		i := slices.IndexFunc(kinds, func(k *Kind) bool { return k.Name == kind })
		if i < 0 {
			return &ChoiceError{"device", names, fmt.Sprintf("%q is none of auto, %s", kind, strings.Join(Kinds(), ", "))}
		}
		k := kinds[i]
		n, err := strconv.Atoi(number)
		if numbered && (err != nil || n < 0) {
			return &ChoiceError{"device", names, fmt.Sprintf("%q is not a device's number", number)}
		}
		found, err := k.Devices()
		if err != nil {
			return &UnavailableError{name, err}
		}
		for ordinal, d := range found {
			if numbered && ordinal != n {
				continue
			}
			if slices.ContainsFunc(p.devices, func(o *device) bool { return o.id == d.ID }) {
				return &ChoiceError{"device", names, d.ID + " is named twice"}
			}
			p.devices = append(p.devices, &device{id: d.ID, kind: k, ordinal: ordinal})
		}
		if numbered && n >= len(found) {
			return &UnavailableError{name, fmt.Errorf("there are %d devices", len(found))}
		}
	}
	return nil
}
