package inference

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/nvcodec/nvcodec/inference/kernel"
	"github.com/nvcodec/nvcodec/yuv"
)

// ErrSymbol is in the error of Decode when fill sets a symbol that no encoder makes: the stream is corrupt.
var ErrSymbol = errors.New("symbol out of range")

// CPU returns the backend that computes with the kernel set of that name ("auto": the fastest this machine has).
func CPU(kernels string) (Backend, error) {
	set, err := kernel.ByName(kernels)
	if err != nil {
		return nil, fmt.Errorf("inference: %w", err)
	}
	return &cpu{set: set, fuse: true}, nil
}

// Backends lists a CPU backend for every available kernel set, generic first.
func Backends() []Backend {
	var all []Backend
	for _, set := range kernel.Available() {
		all = append(all, &cpu{set: set, fuse: true})
	}
	return all
}

type cpu struct {
	set  kernel.Set
	fuse bool // tests compare with plain execution, node by node
}

func (c *cpu) Name() string    { return "cpu" }
func (c *cpu) Kernels() string { return c.set.Name }

// tilePositions is how many positions a fused group works on at once: enough to amortise reading the weights, few
// enough that a block's intermediate values (about 900 channels at 192) stay in the second-level cache.
const tilePositions = 64

// check reports a size that no stream can have.
func (s Size) check() error {
	if s.W <= 0 || s.H <= 0 || s.W%64 != 0 || s.H%64 != 0 || s.W > MaxPixels || s.H > MaxPixels/s.W {
		return fmt.Errorf("inference: padded size %dx%d, want multiples of 64 and at most %d pixels", s.W, s.H, MaxPixels)
	}
	return nil
}

func (c *cpu) Open(m *Model, size Size, threads int, encode bool) (Session, error) {
	if err := size.check(); err != nil {
		return nil, err
	}
	if err := m.proved(); err != nil {
		return nil, err
	}
	if threads < 1 {
		threads = runtime.GOMAXPROCS(0)
	}
	plans := m.plans(size, encode, c.fuse)
	if bytes := plans.bytes(); bytes > math.MaxInt/2 {
		return nil, fmt.Errorf("inference: a session at %dx%d needs %d bytes, more than this machine can address", size.W, size.H, bytes)
	}
	s := &session{set: c.set, model: m, size: size, encode: encode, programs: map[string]*program{}}
	s.tile = tilePositions
	s.arena = make([]int16, plans.arena)
	for i := range s.state {
		s.state[i] = make([]int16, plans.state[i/2])
	}
	for range plans.pictures {
		s.moved = append(s.moved, yuv.New(size.W, size.H))
	}
	s.last, s.next = yuv.New(size.W, size.H), yuv.New(size.W, size.H)
	s.tight = yuv.New(size.W, size.H)
	s.threads = threads
	for name, p := range plans.byName {
		s.programs[name] = s.program(p)
	}
	s.pool = newPool(threads, int(plans.scratch)*s.tile)
	return s, nil
}

// ArenaBytes returns about how much memory a session takes, the weights and threads' scratch apart.
func ArenaBytes(m *Model, size Size, encode bool) int64 {
	if size.check() != nil || m.proved() != nil {
		return 0
	}
	return m.plans(size, encode, true).bytes()
}

// plans are the plans of all graphs of a model, which share one arena, and what they need together.
type plans struct {
	byName   map[string]*plan
	arena    int64    // int16 values
	scratch  int64    // channels a position
	state    [2]int64 // int16 values of memory and feature
	pictures int
	other    int64 // bytes of symbols, tables and indices
	size     Size
}

func (m *Model) plans(size Size, encode, fuse bool) *plans {
	all := &plans{byName: map[string]*plan{}, size: size}
	for name, g := range m.Graphs {
		p := newPlan(g, size, encode, fuse)
		all.byName[name] = p
		all.arena = max(all.arena, p.arena)
		all.scratch = max(all.scratch, p.scratch)
		all.pictures = max(all.pictures, p.pictures)
		for _, v := range p.values {
			n := v.positions() * int64(v.node.C)
			switch v.place {
			case inState:
				all.state[v.state/2] = n
			case inSymbols:
				all.other += 3 * n
			case inBytes:
				all.other += n
			}
		}
	}
	return all
}

func (p *plans) bytes() int64 {
	picture := int64(p.size.W) * int64(p.size.H) * 3 / 2
	return 2*p.arena + 4*(p.state[0]+p.state[1]) + p.other + picture*int64(p.pictures+3)
}

// proved checks and proves a model that was built in memory; Load has done so for one from a file.
func (m *Model) proved() error {
	l := &m.prepared
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.proved {
		if _, err := m.Prove(); err != nil {
			return err
		}
		l.proved = true
	}
	return nil
}

// A session runs the graphs of one model, one at a time, in one arena.
type session struct {
	set      kernel.Set
	model    *Model
	size     Size
	encode   bool
	threads  int
	tile     int
	pool     *pool
	programs map[string]*program

	arena      []int16
	state      [4][]int16    // by state; after a frame the ins and outs change places
	last, next *yuv.Planes   // the decoded picture and the one being decoded; they change places too
	moved      []*yuv.Planes // motion-compensated pictures
	source     *yuv.Planes   // of the frame being encoded
	tight      *yuv.Planes   // a copy of a source whose rows are not tight
	frame      *Frame
	have       struct{ picture, memory, feature bool }
	closed     bool
}

// A program is a plan bound to a session's memory.
type program struct {
	plan     *plan
	levels   [][]step    // by level of coding
	sections []Section   // in coding order
	bySymbol []*value    // the coding node of each section
	coding   [][]Section // by level; parts of sections
	indices  map[*value][]uint8
	needs    struct{ picture, memory, feature, vectors bool }
	leaves   struct{ memory, feature bool }
}

func (p *program) section(v *value) *Section { return &p.sections[slices.Index(p.bySymbol, v)] }

func (s *session) program(pl *plan) *program {
	p := &program{plan: pl, indices: map[*value][]uint8{}}
	levels := 1
	coded := pl.graph.levels() // the encoder runs on one level but names the decoder's
	places := pl.graph.places()
	for _, v := range pl.values {
		n := int(v.positions()) * v.node.C
		levels = max(levels, v.level+1)
		switch v.place {
		case inBytes:
			p.indices[v] = make([]uint8, n)
		case inSymbols:
			p.bySymbol = append(p.bySymbol, v)
			p.sections = append(p.sections, Section{
				Name: v.node.section(), Level: coded[places[v.node.Out]],
				Symbols: make([]int16, n), Tables: make([]uint8, n), Skip: v.node.Op == "code_y",
			})
		case inState:
			p.needs.memory = p.needs.memory || v.state == memoryIn
			p.needs.feature = p.needs.feature || v.state == featureIn
			p.leaves.memory = p.leaves.memory || v.state == memoryOut
			p.leaves.feature = p.leaves.feature || v.state == featureOut
		}
		p.needs.picture = p.needs.picture || v.node.Op == "reference"
		p.needs.vectors = p.needs.vectors || v.node.Op == "vectors"
	}
	p.coding = make([][]Section, levels)
	for i := range p.sections {
		from, level := i, p.sections[i].Level
		for from > 0 && p.sections[from-1].Level == level {
			from--
		}
		if !s.encode {
			p.coding[level] = p.sections[from : i+1 : i+1]
		}
	}
	p.levels = make([][]step, levels)
	for _, g := range pl.groups {
		st := step{}
		for _, v := range g.values {
			if op := s.compile(p, v); op != nil {
				st.ops = append(st.ops, op)
			}
		}
		if st.units, st.grain = s.share(g); len(st.ops) > 0 {
			p.levels[g.level] = append(p.levels[g.level], st)
		}
	}
	return p
}

// share returns how many positions or rows a group works on, and how many a thread takes at once.
func (s *session) share(g *group) (units, grain int) {
	v := g.values[0]
	if !g.rows {
		units = v.h * v.w
		if s.threads == 1 {
			return units, s.tile
		}
		return units, min(s.tile, max(8, units/(2*s.threads)))
	}
	switch v.node.Op {
	case "compensate":
		units = s.size.H / 16
	case "picture":
		units = s.size.H / 8
	default:
		units = v.h
	}
	if s.threads == 1 {
		return units, units
	}
	return units, max(1, units/(4*s.threads))
}

// operand binds a feature or a section's symbols to memory; values outside have none.
func (s *session) operand(p *program, v *value) operand {
	o := operand{c: v.node.C}
	switch v.place {
	case inArena:
		n := v.positions() * int64(o.c)
		buf := s.arena[v.life.offset:][:n:n]
		o.buf = &buf
	case inScratch:
		o.scratch = int(v.life.offset) * s.tile
	case inState:
		o.buf = &s.state[v.state]
	case inSymbols:
		o.buf = &p.section(v).Symbols
	}
	return o
}

// picture returns where the planes of a picture stand when a step runs.
func (s *session) picture(v *value) **yuv.Planes {
	switch v.node.Op {
	case "source":
		return &s.source
	case "reference":
		return &s.last
	}
	return &s.moved[v.picture]
}

func (s *session) Encode(f *Frame, src *yuv.Planes) ([]Section, error) {
	p, err := s.begin(f, true)
	if err != nil {
		return nil, err
	}
	if s.source, err = s.tightSource(src); err != nil {
		return nil, err
	}
	for i := range p.levels[0] {
		s.pool.run(&p.levels[0][i])
	}
	s.end(p)
	return p.sections, nil
}

func (s *session) Decode(f *Frame, fill func(level []Section) error) error {
	p, err := s.begin(f, false)
	if err != nil {
		return err
	}
	for level, steps := range p.levels {
		for i := range steps {
			s.pool.run(&steps[i])
		}
		if len(p.coding[level]) == 0 {
			continue
		}
		if err := fill(p.coding[level]); err != nil {
			return err
		}
		if err := p.checkSymbols(level, f.Threshold); err != nil {
			return err
		}
	}
	s.end(p)
	return nil
}

func (s *session) Picture() *yuv.Planes {
	if !s.have.picture {
		return nil
	}
	return s.last
}

func (s *session) Close() error {
	if !s.closed {
		s.closed = true
		s.pool.close()
		s.arena, s.programs = nil, nil
	}
	return nil
}

// begin checks that the frame can be computed now.
func (s *session) begin(f *Frame, encode bool) (*program, error) {
	p := s.programs[f.Graph]
	switch {
	case s.closed:
		return nil, errors.New("inference: session is closed")
	case s.encode != encode:
		return nil, errors.New("inference: session was opened for the other direction")
	case p == nil:
		return nil, fmt.Errorf("inference: model has no graph %q", f.Graph)
	case f.QP < 0 || f.QP > 63:
		return nil, fmt.Errorf("inference: QP is %d, want 0..63", f.QP)
	case f.Threshold < 0 || f.Threshold > 64:
		return nil, fmt.Errorf("inference: threshold is %d, want 0..64", f.Threshold)
	case p.needs.picture && !s.have.picture:
		return nil, fmt.Errorf("inference: graph %s needs a picture decoded before", f.Graph)
	case p.needs.memory && !s.have.memory, p.needs.feature && !s.have.feature:
		return nil, fmt.Errorf("inference: graph %s needs what the frame before did not leave", f.Graph)
	}
	if p.needs.vectors {
		if want := s.size.W / 16 * (s.size.H / 16) * 2; len(f.Vectors) != want {
			return nil, fmt.Errorf("inference: %d components of vectors, want %d", len(f.Vectors), want)
		}
		for i, v := range f.Vectors {
			if v < -MaxVector || v > MaxVector {
				return nil, fmt.Errorf("inference: vector %d has component %d, want -%d..%d", i/2, v, MaxVector, MaxVector)
			}
		}
	}
	s.frame = f
	return p, nil
}

// end makes what the frame left the state of the next.
func (s *session) end(p *program) {
	s.last, s.next = s.next, s.last
	s.state[memoryIn], s.state[memoryOut] = s.state[memoryOut], s.state[memoryIn]
	s.state[featureIn], s.state[featureOut] = s.state[featureOut], s.state[featureIn]
	s.have.picture, s.have.memory, s.have.feature = true, p.leaves.memory, p.leaves.feature
	s.frame, s.source = nil, nil
}

// tightSource returns src, or a copy of it with tight rows.
func (s *session) tightSource(src *yuv.Planes) (*yuv.Planes, error) {
	w, h := s.size.W, s.size.H
	if src.W != w || src.H != h {
		return nil, fmt.Errorf("inference: source is %dx%d, session %dx%d", src.W, src.H, w, h)
	}
	if src.StrideY == w && src.StrideC == w/2 && len(src.Y) == w*h && len(src.U) == w*h/4 && len(src.V) == w*h/4 {
		return src, nil
	}
	for y := range h {
		copy(s.tight.Y[y*w:][:w], src.Y[y*src.StrideY:])
	}
	for y := range h / 2 {
		copy(s.tight.U[y*w/2:][:w/2], src.U[y*src.StrideC:])
		copy(s.tight.V[y*w/2:][:w/2], src.V[y*src.StrideC:])
	}
	return s.tight, nil
}

// checkSymbols refuses symbols outside what the encoder's clamps allow, and skipped ones that are not 0: the proof of
// the bounds rests on them.
func (p *program) checkSymbols(level, threshold int) error {
	for i := range p.sections {
		v, s := p.bySymbol[i], &p.sections[i]
		if v.level != level {
			continue
		}
		limit := int16(127)
		if s.Skip {
			limit = int16(32767 >> p.plan.meanF(v))
		}
		for j, k := range s.Symbols {
			if k > limit || k < -limit {
				return fmt.Errorf("inference: section %s: symbol %d is %d, want -%d..%d: %w", s.Name, j, k, limit, limit, ErrSymbol)
			}
			if s.Skip && k != 0 && int(s.Tables[j]) < threshold {
				return fmt.Errorf("inference: section %s: skipped symbol %d is %d: %w", s.Name, j, k, ErrSymbol)
			}
		}
	}
	return nil
}

// meanF returns F of the mean that a code_y subtracts; the decoder reads it from the graph, not from a value.
func (p *plan) meanF(v *value) int {
	for i := range p.graph.Nodes {
		if p.graph.Nodes[i].Out == v.node.In[2] {
			return p.graph.Nodes[i].F
		}
	}
	return 0
}
