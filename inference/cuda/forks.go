//go:build cuda

package cuda

import "slices"

// A fork is a second stream beside one.
type fork struct {
	m, side machine // side: nil until there are calls for it
	events  []event
}

func (f *fork) close() error {
	var err error
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	if f.side == nil {
		return nil
	}
	keep(f.side.sync())
	for _, e := range f.events {
		keep(e.close())
	}
	keep(f.side.close())
	return err
}

type eventRecord struct {
	m machine
	e event
}

func (r *eventRecord) run() error { return r.m.record(r.e) }

type eventWait struct {
	m machine
	e event
}

func (w *eventWait) run() error { return w.m.wait(w.e) }

// launches prepares calls, each for its stream. What the second stream is given begins behind what the first one has
// been given before, and what the first one is given later behind all of these.
func (f *fork) launches(calls []call) ([]launch, error) {
	two := slices.ContainsFunc(calls, func(c call) bool { return c.stream == 1 })
	if two && f.side == nil {
		var err error
		if f.side, err = f.m.beside(); err != nil {
			return nil, err
		}
	}
	var all []launch
	used := 0
	next := func() (event, error) {
		if used == len(f.events) {
			e, err := f.m.event()
			if err != nil {
				return nil, err
			}
			f.events = append(f.events, e)
		}
		used++
		return f.events[used-1], nil
	}
	streams := [2]machine{f.m, f.side}
	awaited := map[int]event{} // by the number of a call
	var behind [2]bool         // what a stream was given last is a call
	for _, c := range calls {
		awaited[c.after] = nil
	}
	if two {
		e, err := next()
		if err != nil {
			return nil, err
		}
		all = append(all, &eventRecord{f.m, e}, &eventWait{f.side, e})
	}
	for i, c := range calls {
		if c.after > 0 {
			all = append(all, &eventWait{streams[c.stream], awaited[c.after]})
			behind[c.stream] = false
		}
		c.early, behind[c.stream] = behind[c.stream], true
		l, err := streams[c.stream].prepare(c)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
		if _, ok := awaited[i+1]; ok {
			e, err := next()
			if err != nil {
				return nil, err
			}
			awaited[i+1] = e
			all = append(all, &eventRecord{streams[c.stream], e})
			behind[c.stream] = false
		}
	}
	if two {
		e, err := next()
		if err != nil {
			return nil, err
		}
		all = append(all, &eventRecord{f.side, e}, &eventWait{f.m, e})
	}
	return all, nil
}
