//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/yuv"
)

// A session runs the graphs of one model on one machine. Its memory on the device is one block:
//
//	frame parameters, vectors, source, two decoded pictures, moved pictures, memory and feature twice, symbols and
//	their tables, arena
//
// and on the host another: frame parameters, vectors, source, two decoded pictures, symbols and their tables. Coders of
// whole frames have a session for the network, with vectors and source twice and nothing on the host.
type session struct {
	backend  *backend
	m        machine
	weights  *weights
	size     inference.Size
	encode   bool
	programs map[string]*program

	device   pointer
	host     []byte
	layout   layout
	source   *yuv.Planes    // in host
	pictures [2]*yuv.Planes // likewise, by parity

	parity int // which picture and state the next frame reads
	have   struct{ picture, memory, feature bool }
	closed bool
}

// A layout says where things begin, in bytes.
type layout struct {
	vectors, source [2]int64 // by parity; the same on both sides; frame parameters begin at 0
	pictures        [2]int64
	device, host    struct{ coding, bytes int64 }
	moved           int64
	memory, feature [2]int64
	arena           int64
	picture, field  int64 // bytes of a picture and of vectors
	codingBytes     int64
}

// A program is a plan bound to a session's memory.
type program struct {
	plan     *plan
	levels   int
	parts    [2][]*part // by parity: one part in the encoder, one for each level in the decoder
	coded    []*value   // the coding node of each section
	sections []inference.Section
	coding   [][]inference.Section // decoder, by level; parts of sections
	limits   []int16               // largest symbol of each section
	needs    struct{ picture, memory, feature, vectors bool }
	leaves   struct{ memory, feature bool }
}

// A part is what a machine does without the host in between; from its second run on as a captured graph.
type part struct {
	steps    []launch
	ran      bool
	captured captured
}

func (p *part) run(m machine, capture bool) error {
	if capture && p.ran && p.captured == nil {
		var err error
		if p.captured, err = m.capture(p.all); err != nil {
			return err
		}
	}
	p.ran = true
	if p.captured != nil {
		return p.captured.run()
	}
	return p.all()
}

func (p *part) all() error {
	for _, s := range p.steps {
		if err := s.run(); err != nil {
			return err
		}
	}
	return nil
}

type uploading struct {
	m   machine
	dst pointer
	src []byte
}

func (u *uploading) run() error { return u.m.upload(u.dst, u.src) }

type downloading struct {
	m   machine
	dst []byte
	src pointer
}

func (d *downloading) run() error { return d.m.download(d.dst, d.src) }

// plans returns the plan of every graph and the layout that holds them all; ahead is what coders of whole frames have,
// which fill one frame's vectors and source while the one before is computed.
func plans(m *inference.Model, fused map[string]*fusion, size inference.Size, encode, ahead bool) (map[string]*plan, layout, error) {
	all := map[string]*plan{}
	var arena, moved, memory, feature int64
	l := layout{picture: int64(size.W) * int64(size.H) * 3 / 2, field: int64(size.W/16) * int64(size.H/16) * 4}
	for _, name := range slices.Sorted(maps.Keys(m.Graphs)) {
		p, err := newPlan(m.Graphs[name], size, encode, fused[name])
		if err != nil {
			return nil, l, err
		}
		all[name] = p
		arena = max(arena, p.arena)
		moved = max(moved, int64(p.moved))
		l.codingBytes = max(l.codingBytes, p.coding)
		for _, v := range p.values {
			switch v.place {
			case inMemory:
				memory = 2 * v.count()
			case inFeature:
				feature = 2 * v.count()
			}
		}
	}
	at := int64(0)
	take := func(bytes int64) int64 {
		from := at
		at += aligned(bytes)
		return from
	}
	take(int64(unsafe.Sizeof(frameParameters{})))
	l.vectors[0] = take(l.field)
	l.vectors[1] = l.vectors[0]
	if ahead {
		l.vectors[1] = take(l.field)
	}
	if encode || !ahead {
		l.source[0] = take(l.picture)
		l.source[1] = l.source[0]
	}
	if encode && ahead {
		l.source[1] = take(l.picture)
	}
	l.pictures = [2]int64{take(l.picture), take(l.picture)}
	shared := at
	l.host.coding = take(l.codingBytes)
	l.host.bytes = at
	at = shared
	l.moved = take(moved * aligned(l.picture))
	l.memory = [2]int64{take(memory), take(memory)}
	l.feature = [2]int64{take(feature), take(feature)}
	l.device.coding = take(l.codingBytes)
	l.arena = take(arena)
	l.device.bytes = at
	return all, l, nil
}

// address returns where a value lies in a frame of that parity.
func (s *session) address(v *value, parity int) pointer {
	l := &s.layout
	which := parity
	if v.kept || v.node.Op == "picture" {
		which = 1 - parity
	}
	switch v.place {
	case inArena:
		return s.device + pointer(l.arena+v.offset)
	case inCoding:
		return s.device + pointer(l.device.coding+v.offset)
	case inMemory:
		return s.device + pointer(l.memory[which])
	case inFeature:
		return s.device + pointer(l.feature[which])
	case inVectors:
		return s.device + pointer(l.vectors[parity])
	case inPicture:
		switch v.node.Op {
		case "source":
			return s.device + pointer(l.source[parity])
		case "compensate":
			return s.device + pointer(l.moved+int64(v.picture)*aligned(l.picture))
		}
		return s.device + pointer(l.pictures[which])
	}
	panic("cuda: " + v.node.Out + " has no memory")
}

func (s *session) tables(v *value) pointer {
	return s.device + pointer(s.layout.device.coding+v.tables)
}
func (s *session) frameParameters() pointer { return s.device }

// hostPart returns host memory.
func (s *session) hostPart(at, bytes int64) []byte { return s.host[at:][:bytes:bytes] }

// newProgram collects what is known of a plan without memory.
func newProgram(pl *plan) *program {
	p := &program{plan: pl, levels: 1}
	for _, v := range pl.values {
		p.levels = max(p.levels, v.level+1)
		switch {
		case v.place == inCoding:
			section, limit := inference.Section{Name: "z", Level: v.section}, int16(127)
			if v.node.Op == "code_y" {
				section.Name, section.Skip = fmt.Sprintf("y%d", v.node.Ints["step"]), true
				limit = int16(32767 >> nodeOf(pl.graph, v.node.In[2]).F)
			}
			p.coded = append(p.coded, v)
			p.sections = append(p.sections, section)
			p.limits = append(p.limits, limit)
		case v.node.Op == "reference":
			p.needs.picture = true
		case v.node.Op == "vectors":
			p.needs.vectors = true
		case v.node.Op == "memory_in":
			p.needs.memory = true
		case v.node.Op == "feature_in":
			p.needs.feature = true
		case v.node.Op == "memory_out":
			p.leaves.memory = true
		case v.node.Op == "feature_out":
			p.leaves.feature = true
		}
	}
	return p
}

// program binds a plan to the session's memory.
func (s *session) program(pl *plan) (*program, error) {
	p := newProgram(pl)
	for i, v := range p.coded {
		n := v.count()
		symbols := s.hostPart(s.layout.host.coding+v.offset, 2*n)
		p.sections[i].Symbols = unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(symbols))), n)
		p.sections[i].Tables = s.hostPart(s.layout.host.coding+v.tables, n)
	}
	p.coding = make([][]inference.Section, p.levels)
	if !s.encode {
		for i := range p.sections {
			level := p.sections[i].Level
			p.coding[level] = append(p.coding[level], p.sections[i])
		}
	}
	for parity := range p.parts {
		if err := s.assemble(p, parity, p.levels); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func nodeOf(g *inference.Graph, name string) *inference.Node {
	for i := range g.Nodes {
		if g.Nodes[i].Out == name {
			return &g.Nodes[i]
		}
	}
	return nil
}

// assemble makes the parts of one parity.
func (s *session) assemble(p *program, parity, levels int) error {
	l := &s.layout
	up := func(at, host, bytes int64) launch {
		return &uploading{s.m, s.device + pointer(at), s.hostPart(host, bytes)}
	}
	down := func(host, at, bytes int64) launch {
		return &downloading{s.m, s.hostPart(host, bytes), s.device + pointer(at)}
	}
	for level := range levels {
		part := &part{}
		if level == 0 {
			part.steps = append(part.steps, up(0, 0, int64(unsafe.Sizeof(frameParameters{}))))
			if p.needs.vectors {
				part.steps = append(part.steps, up(l.vectors[0], l.vectors[0], l.field))
			}
			if s.encode {
				part.steps = append(part.steps, up(l.source[0], l.source[0], l.picture))
			}
		} else {
			for _, v := range p.coded {
				if v.level == level-1 {
					part.steps = append(part.steps, up(l.device.coding+v.offset, l.host.coding+v.offset, 2*v.count()))
				}
			}
		}
		behind := false // the last step is a call
		for _, v := range p.plan.values {
			if v.level != level {
				continue
			}
			for _, c := range s.compile(v, parity) {
				c.early, behind = behind, true
				step, err := s.m.prepare(c)
				if err != nil {
					return err
				}
				part.steps = append(part.steps, step)
			}
		}
		switch {
		case s.encode:
			part.steps = append(part.steps, down(l.host.coding, l.device.coding, p.plan.coding))
		default:
			for _, v := range p.coded {
				if v.level == level {
					part.steps = append(part.steps, down(l.host.coding+v.tables, l.device.coding+v.tables, v.count()))
				}
			}
		}
		if level == levels-1 {
			part.steps = append(part.steps, down(l.pictures[1-parity], l.pictures[1-parity], l.picture))
		}
		p.parts[parity] = append(p.parts[parity], part)
	}
	return nil
}

func (s *session) Encode(f *inference.Frame, src *yuv.Planes) ([]inference.Section, error) {
	p, err := s.begin(f, true)
	if err != nil {
		return nil, err
	}
	if src.W != s.size.W || src.H != s.size.H {
		return nil, fmt.Errorf("cuda: source is %dx%d, session %dx%d", src.W, src.H, s.size.W, s.size.H)
	}
	s.stage(f, p)
	copyPlanes(s.source, src)
	if err := s.run(p.parts[s.parity][0]); err != nil {
		return nil, err
	}
	s.end(p)
	return p.sections, nil
}

func (s *session) Decode(f *inference.Frame, fill func(level []inference.Section) error) error {
	p, err := s.begin(f, false)
	if err != nil {
		return err
	}
	s.stage(f, p)
	for level, part := range p.parts[s.parity] {
		if err := s.run(part); err != nil {
			return err
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

// run has a part computed and waits for it.
func (s *session) run(p *part) error {
	if err := p.run(s.m, s.backend.capture); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	if err := s.m.sync(); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return nil
}

// begin checks that the frame can be computed now.
func (s *session) begin(f *inference.Frame, encode bool) (*program, error) {
	switch {
	case s.closed:
		return nil, errors.New("cuda: session is closed")
	case s.encode != encode:
		return nil, errors.New("cuda: session was opened for the other direction")
	}
	p, err := s.check(f)
	if err == nil && p.needs.vectors {
		err = s.checkVectors(f.Vectors)
	}
	return p, err
}

// check finds a frame's program, and that the frame before has left what it needs.
func (s *session) check(f *inference.Frame) (*program, error) {
	p := s.programs[f.Graph]
	switch {
	case p == nil:
		return nil, fmt.Errorf("cuda: model has no graph %q", f.Graph)
	case f.QP < 0 || f.QP > 63:
		return nil, fmt.Errorf("cuda: QP is %d, want 0..63", f.QP)
	case f.Threshold < 0 || f.Threshold > 64:
		return nil, fmt.Errorf("cuda: threshold is %d, want 0..64", f.Threshold)
	case p.needs.picture && !s.have.picture:
		return nil, fmt.Errorf("cuda: graph %s needs a picture decoded before", f.Graph)
	case p.needs.memory && !s.have.memory, p.needs.feature && !s.have.feature:
		return nil, fmt.Errorf("cuda: graph %s needs what the frame before did not leave", f.Graph)
	}
	return p, nil
}

func (s *session) checkVectors(vectors []int16) error {
	if want := s.size.W / 16 * (s.size.H / 16) * 2; len(vectors) != want {
		return fmt.Errorf("cuda: %d components of vectors, want %d", len(vectors), want)
	}
	for i, v := range vectors {
		if v < -inference.MaxVector || v > inference.MaxVector {
			return fmt.Errorf("cuda: vector %d has component %d, want -%d..%d", i/2, v, inference.MaxVector, inference.MaxVector)
		}
	}
	return nil
}

// stage puts what varies from frame to frame where the uploads read it.
func (s *session) stage(f *inference.Frame, p *program) {
	*structure[frameParameters](s.host) = frameParameters{QP: int32(f.QP), Threshold: int32(f.Threshold)}
	if p.needs.vectors {
		room := s.hostPart(s.layout.vectors[0], int64(2*len(f.Vectors)))
		copy(unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(room))), len(f.Vectors)), f.Vectors)
	}
}

// end makes what the frame left the state of the next.
func (s *session) end(p *program) {
	s.parity = 1 - s.parity
	s.have.picture, s.have.memory, s.have.feature = true, p.leaves.memory, p.leaves.feature
}

// checkSymbols refuses symbols outside what the encoder's clamps allow, and skipped ones that are not 0: the proof of
// the bounds rests on them.
func (p *program) checkSymbols(level, threshold int) error {
	for i := range p.sections {
		s := &p.sections[i]
		if s.Level != level {
			continue
		}
		for j, k := range s.Symbols {
			if k > p.limits[i] || k < -p.limits[i] {
				return fmt.Errorf("cuda: section %s: symbol %d is %d, want -%d..%d: %w", s.Name, j, k, p.limits[i], p.limits[i], inference.ErrSymbol)
			}
			if s.Skip && k != 0 && int(s.Tables[j]) < threshold {
				return fmt.Errorf("cuda: section %s: skipped symbol %d is %d: %w", s.Name, j, k, inference.ErrSymbol)
			}
		}
	}
	return nil
}

func (s *session) Picture() *yuv.Planes {
	if !s.have.picture || s.closed {
		return nil
	}
	return s.pictures[s.parity]
}

// planes is a picture in memory of tight planes one behind the other.
func planes(b []byte, s inference.Size) *yuv.Planes {
	y := s.W * s.H
	return &yuv.Planes{W: s.W, H: s.H, Y: b[:y:y], U: b[y : y+y/4 : y+y/4], V: b[y+y/4:], StrideY: s.W, StrideC: s.W / 2}
}

func copyPlanes(dst, src *yuv.Planes) {
	rows := func(d []byte, s []byte, stride, w, h int) {
		if stride == w {
			copy(d, s[:w*h])
			return
		}
		for r := range h {
			copy(d[r*w:][:w], s[r*stride:])
		}
	}
	rows(dst.Y, src.Y, src.StrideY, dst.W, dst.H)
	rows(dst.U, src.U, src.StrideC, dst.W/2, dst.H/2)
	rows(dst.V, src.V, src.StrideC, dst.W/2, dst.H/2)
}

// Close waits for the machine and gives everything back; it reports the first error and goes on.
func (s *session) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.m.sync()
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	for _, p := range s.programs {
		for _, parts := range p.parts {
			for _, part := range parts {
				if part.captured != nil {
					keep(part.captured.close())
				}
			}
		}
	}
	s.programs = nil
	if s.device != 0 {
		keep(s.m.free(s.device))
	}
	if s.host != nil {
		keep(s.m.freeHost(s.host))
	}
	if s.weights != nil {
		keep(s.backend.release(s.m, s.weights))
	}
	keep(s.m.close())
	if err != nil {
		return fmt.Errorf("cuda: close: %w", err)
	}
	return nil
}
