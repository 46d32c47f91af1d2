//go:build cuda

package cuda

import (
	"fmt"
	"sync"

	"github.com/nvcodec/nvcodec/inference"
)

// A backend opens sessions on one device. The sessions of a model share its weights.
type backend struct {
	name string
	sm   int
	fp16 bool // convolutions on FP16 units
	open func() (machine, error)
	// openAt opens a machine that is more or less urgent; nil: there is no such thing.
	openAt  func(u urgency) (machine, error)
	capture bool // parts run as captured graphs from their second time on
	poison  bool // tests: coders of whole frames fill what they are about to overwrite, and what they have given back

	mu     sync.Mutex
	models map[*inference.Model]*weights
}

func (b *backend) urgent(u urgency) (machine, error) {
	if b.openAt == nil {
		return b.open()
	}
	return b.openAt(u)
}

func (b *backend) Name() string { return b.name }
func (b *backend) Kernels() string {
	if b.fp16 {
		return fp16
	}
	return familyName(b.sm)
}

// checkSize reports a size that no stream can have.
func checkSize(s inference.Size) error {
	if s.W <= 0 || s.H <= 0 || s.W%64 != 0 || s.H%64 != 0 || int64(s.W)*int64(s.H) > inference.MaxPixels {
		return fmt.Errorf("cuda: padded size %dx%d, want multiples of 64 and at most %d pixels", s.W, s.H, inference.MaxPixels)
	}
	return nil
}

// Memory returns how many bytes of device memory and of page-locked host memory one session takes, and how many the
// weights take that the sessions of a model on one device share: what the family of kernels that takes most wants.
func Memory(m *inference.Model, size inference.Size, encode bool) (device, host, shared int64, err error) {
	if err := checkSize(size); err != nil {
		return 0, 0, 0, err
	}
	err = eachFamily(m, func(w *weights) error {
		_, l, err := plans(m, w.fused, size, encode, false)
		device, host, shared = max(device, l.device.bytes), max(host, l.host.bytes), max(shared, w.bytes)
		return err
	})
	return device, host, shared, err
}

// eachFamily calls f with a model's weights, nowhere loaded, as every family of kernels wants them.
func eachFamily(m *inference.Model, f func(w *weights) error) error {
	if _, err := m.Prove(); err != nil {
		return err
	}
	for _, sm := range families {
		w := &weights{model: m, fused: map[string]*fusion{}, at: map[string]int64{}, sizes: map[string]int{}}
		w.collect(sm)
		if err := f(w); err != nil {
			return err
		}
	}
	return nil
}

// Open plans every graph and takes the memory that they need, on a stream of its own; threads has no meaning on a
// device.
func (b *backend) Open(m *inference.Model, size inference.Size, threads int, encode bool) (inference.Session, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	machine, err := b.open()
	if err != nil {
		return nil, err
	}
	return b.openOn(machine, m, size, encode)
}

func (b *backend) openOn(on machine, m *inference.Model, size inference.Size, encode bool) (inference.Session, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	s := &session{backend: b, m: on, size: size, encode: encode, programs: map[string]*program{}}
	if err := s.prepare(m); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *session) prepare(m *inference.Model) error {
	var err error
	if s.weights, err = s.backend.share(s.m, m); err != nil {
		return err
	}
	all, l, err := plans(m, s.weights.fused, s.size, s.encode, false)
	if err != nil {
		return err
	}
	s.layout = l
	if free, err := s.m.available(); err == nil && l.device.bytes > free {
		return fmt.Errorf("cuda: a session at %dx%d needs %d MiB of device memory, %d MiB are free", s.size.W, s.size.H, l.device.bytes>>20, free>>20)
	}
	if s.device, err = s.m.alloc(l.device.bytes); err != nil {
		return fmt.Errorf("cuda: %d MiB of device memory: %w", l.device.bytes>>20, err)
	}
	if s.host, err = s.m.host(l.host.bytes); err != nil {
		return fmt.Errorf("cuda: %d MiB of page-locked memory: %w", l.host.bytes>>20, err)
	}
	s.source = planes(s.hostPart(l.source[0], l.picture), s.size)
	for i := range s.pictures {
		s.pictures[i] = planes(s.hostPart(l.pictures[i], l.picture), s.size)
	}
	for name, p := range all {
		if s.programs[name], err = s.program(p); err != nil {
			return fmt.Errorf("cuda: %w", err)
		}
	}
	return nil
}

// share returns the weights of a model on this device, loading them for its first session.
func (b *backend) share(m machine, model *inference.Model) (*weights, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.models[model]
	if w == nil {
		var err error
		if w, err = loadWeights(m, model); err != nil {
			return nil, err
		}
		if b.models == nil {
			b.models = map[*inference.Model]*weights{}
		}
		b.models[model] = w
	}
	w.refs++
	return w, nil
}

// release gives weights back; the last session frees them.
func (b *backend) release(m machine, w *weights) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.refs--; w.refs > 0 {
		return nil
	}
	delete(b.models, w.model)
	return m.free(w.base)
}
