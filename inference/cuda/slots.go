//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/yuv"
)

// A slot is the page-locked memory of one frame. It goes back to its pool when the last reference is given up: the
// pipeline's, which ends when the host has waited for every stage of the frame, the caller's, who reads what was
// received, and that of the next frame, whose vectors are coded against this one's.
type slot struct {
	pool   *pool
	refs   int
	memory []byte

	params  []byte      // frameParameters
	picture []byte      // as decoded, at padded size
	shown   *yuv.Planes // of that, the picture
	field   []byte      // the motion vectors, and as such:
	vectors []int16
	result  []byte
	raw     []byte      // encoder: as loaded, tight
	loaded  *yuv.Planes // the same
	cut     []byte      // encoder: two int64 that a scene cut is judged by
	input   []byte      // decoder: the payload's image
	hash    []byte      // decoder: of the picture

	number  int // of the frame
	graph   *codingGraph
	before  *slot // the frame before, when it had vectors; a reference
	lanes   int   // decoder
	payload []byte
	err     error         // of the host's own work
	ready   chan struct{} // gets a value when that is done
}

// A slotLayout says what a slot holds, in bytes; parts of 0 bytes it has none of.
type slotLayout struct{ picture, vectors, result, raw, cut, input, hash int64 }

func (l *slotLayout) bytes() int64 {
	n := aligned(int64(unsafe.Sizeof(frameParameters{})))
	for _, part := range []int64{l.picture, l.vectors, l.result, l.raw, l.cut, l.input, l.hash} {
		n += aligned(part)
	}
	return n
}

// A pool lends slots.
type pool struct {
	m      machine
	all    []*slot
	free   []*slot
	poison bool // in tests: what comes back
}

func newPool(m machine, slots int, l *slotLayout, o *inference.CodingOptions, poison bool) (*pool, error) {
	p := &pool{m: m, poison: poison}
	for range slots {
		memory, err := m.host(l.bytes())
		if err != nil {
			p.close()
			return nil, fmt.Errorf("cuda: %d MiB of page-locked memory: %w", l.bytes()>>20, err)
		}
		s := &slot{pool: p, memory: memory, ready: make(chan struct{}, 1)}
		at := int64(0)
		take := func(n int64) []byte {
			part := memory[at:][:n:n]
			at += aligned(n)
			return part
		}
		s.params = take(int64(unsafe.Sizeof(frameParameters{})))
		if s.picture = take(l.picture); l.picture > 0 {
			s.shown = planes(s.picture, o.Padded())
			s.shown.W, s.shown.H = o.W, o.H
		}
		s.field = take(l.vectors)
		s.vectors = int16s(s.field)
		s.result = take(l.result)
		if s.raw = take(l.raw); l.raw > 0 {
			s.loaded = tightPlanes(s.raw, o.W, o.H)
		}
		s.cut = take(l.cut)
		s.input = take(l.input)
		s.hash = take(l.hash)
		p.all = append(p.all, s)
	}
	p.free = append(p.free, p.all...)
	return p, nil
}

// take lends a slot with one reference, or nil when all are lent.
func (p *pool) take() *slot {
	if len(p.free) == 0 {
		return nil
	}
	s := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	s.refs, s.err, s.before = 1, nil, nil
	return s
}

func (s *slot) retain() *slot {
	if s != nil {
		s.refs++
	}
	return s
}

func (s *slot) release() {
	if s == nil {
		return
	}
	if s.refs--; s.refs > 0 {
		return
	}
	if s.pool.poison {
		for i := range s.memory {
			s.memory[i] = 0xc9
		}
	}
	s.pool.free = append(s.pool.free, s)
}

func (p *pool) close() error {
	var err error
	for _, s := range p.all {
		if e := p.m.freeHost(s.memory); err == nil {
			err = e
		}
	}
	p.all, p.free = nil, nil
	return err
}

func int16s(b []byte) []int16 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/2)
}

// mapped is where a device finds page-locked memory.
func mapped(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// tightPlanes is a w x h picture in memory, planes one behind the other.
func tightPlanes(b []byte, w, h int) *yuv.Planes {
	cw, ch := (w+1)/2, (h+1)/2
	y, c := w*h, cw*ch
	return &yuv.Planes{W: w, H: h, Y: b[:y:y], U: b[y : y+c : y+c], V: b[y+c : y+2*c], StrideY: w, StrideC: cw}
}
