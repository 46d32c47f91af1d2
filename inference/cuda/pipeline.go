//go:build cuda

package cuda

// A pipeline is what coders of whole frames are made of: stages, each a stream of its own, that frames pass one after
// the other. Buffers on the device lie at fixed places, which captured graphs need, and most exist twice, for frames of
// even and of odd number: before a stage fills one, it waits for the stages that may still read what frame n-2 left
// there. The first error stays, and nothing is given to the device after it.
type pipeline struct {
	backend *backend
	stages  []*stage
	events  int // that each stage has
	err     error
}

// A stage has an event for each of the last frames.
type stage struct {
	p      *pipeline
	m      machine
	passed []event // frame n's is passed[n%len]
	fork   *fork
}

// newPipeline wants so many frames in flight.
func newPipeline(b *backend, inFlight int) *pipeline {
	return &pipeline{backend: b, events: inFlight + 2} // stages wait for up to two frames before their own
}

// stage adds a stage on m, which is the pipeline's from now on.
func (p *pipeline) stage(m machine) (*stage, error) {
	s := &stage{p: p, m: m, fork: &fork{m: m}}
	p.stages = append(p.stages, s)
	for range p.events {
		e, err := m.event()
		if err != nil {
			return nil, err
		}
		s.passed = append(s.passed, e)
	}
	return s, nil
}

// stageOfItsOwn adds a stage on a new stream.
func (p *pipeline) stageOfItsOwn(u urgency) (*stage, error) {
	m, err := p.backend.urgent(u)
	if err != nil {
		return nil, err
	}
	return p.stage(m)
}

func (s *stage) event(n int) event { return s.passed[n%len(s.passed)] }

// after has what s gets from now on wait until frame n has passed o; frames before the first have.
func (s *stage) after(o *stage, n int) {
	if s.p.err == nil && n >= 0 {
		s.p.err = s.m.wait(o.event(n))
	}
}

// done marks the end of what s does for frame n.
func (s *stage) done(n int) {
	if s.p.err == nil {
		s.p.err = s.m.record(s.event(n))
	}
}

// await has the host wait until frame n has passed s.
func (s *stage) await(n int) {
	if s.p.err == nil {
		s.p.err = s.event(n).sync()
	}
}

func (s *stage) put(dst pointer, src []byte) {
	if s.p.err == nil {
		s.p.err = s.m.upload(dst, src)
	}
}

func (s *stage) get(dst []byte, src pointer) {
	if s.p.err == nil {
		s.p.err = s.m.download(dst, src)
	}
}

func (s *stage) zero(dst pointer, bytes int64) {
	if s.p.err == nil {
		s.p.err = s.m.fill(dst, 0, bytes)
	}
}

// poison fills, in tests, what s is about to overwrite.
func (s *stage) poison(dst pointer, bytes int64) {
	if s.p.backend.poison && s.p.err == nil {
		s.p.err = s.m.fill(dst, 0xb7, bytes)
	}
}

func (s *stage) do(p *part) {
	if s.p.err == nil {
		s.p.err = p.run(s.m, s.p.backend.capture)
	}
}

// part prepares calls for s.
func (s *stage) part(calls []call) (*part, error) {
	steps, err := s.fork.launches(calls)
	return &part{steps: steps}, err
}

// sync waits for every stage.
func (p *pipeline) sync() error {
	var err error
	for _, s := range p.stages {
		if e := s.m.sync(); err == nil {
			err = e
		}
	}
	return err
}

// close gives back streams and events, which must have been waited for.
func (p *pipeline) close() error {
	var err error
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	for _, s := range p.stages {
		for _, e := range s.passed {
			keep(e.close())
		}
		keep(s.fork.close())
		keep(s.m.close())
	}
	p.stages = nil
	return err
}
