package codec

// A plan is what is decided of a frame before its motion search: nothing of it depends on how the frame turns out to
// code, so that several can be in flight and a stream never depends on how many are.
type plan struct {
	typ FrameType
	k   int64 // frames since the intra frame
	qp  int
}

// A planner decides frame after frame.
type planner struct {
	o     *EncoderOptions
	shift [8]uint8 // the model's QP pattern
	k     int64    // of the next frame
}

// mayCut says whether a scene cut would change the next frame's plan.
func (p *planner) mayCut() bool { return p.o.SceneCut && !p.intraDue() }

func (p *planner) intraDue() bool {
	return p.k == 0 || p.o.IntraPeriod > 0 && p.k >= int64(p.o.IntraPeriod)
}

// next plans the next frame; cut says that it shows another scene than the one before.
func (p *planner) next(cut bool) plan {
	if cut || p.intraDue() {
		p.k = 0
	}
	f := plan{typ: Inter, k: p.k, qp: qpOf(p.k, p.o.QPI, p.o.QPP, &p.shift)}
	switch {
	case p.k == 0:
		f.typ = Intra
	case p.k == 1, p.o.ResetInterval > 0 && (p.k-1)%int64(p.o.ResetInterval) == 0:
		// An intra frame leaves no memory, so the frame after it builds one, and resets count from there: with the
		// default interval they meet frames that the QP pattern spares.
		f.typ = Reset
	}
	p.k++
	return f
}
