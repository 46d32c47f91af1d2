//go:build cuda

package cuda

// A fork is a second stream beside one, for calls that are marked to run aside.
type fork struct {
	m, side    machine
	begin, end event
}

func newFork(b *backend, m machine) (*fork, error) {
	f := &fork{m: m}
	var err error
	if f.side, err = b.open(); err != nil {
		return nil, err
	}
	if f.begin, err = m.event(); err == nil {
		f.end, err = f.side.event()
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *fork) close() error {
	var err error
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	keep(f.side.sync())
	for _, e := range []event{f.begin, f.end} {
		if e != nil {
			keep(e.close())
		}
	}
	keep(f.side.close())
	return err
}

// A crossing has one stream wait for what the other has been given so far.
type crossing struct {
	from, to machine
	e        event
}

func (c *crossing) run() error {
	if err := c.from.record(c.e); err != nil {
		return err
	}
	return c.to.wait(c.e)
}

// launches prepares calls, those aside on the second stream.
func (f *fork) launches(calls []call) ([]launch, error) {
	var all []launch
	parted := false
	join := func() {
		if parted {
			all = append(all, &crossing{f.side, f.m, f.end})
		}
		parted = false
	}
	for _, c := range calls {
		m := f.m
		if c.aside {
			m = f.side
			if !parted {
				all = append(all, &crossing{f.m, f.side, f.begin})
			}
			parted = true
		}
		if c.joins {
			join()
		}
		l, err := m.prepare(c)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	join()
	return all, nil
}
