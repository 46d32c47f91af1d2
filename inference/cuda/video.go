//go:build cuda

package cuda

import (
	"errors"
	"fmt"

	"github.com/nvcodec/nvcodec/inference"
)

// A coder is what encoder and decoder of whole frames share: the network's session and its memory, the entropy
// coder's tables, and the frames in flight.
type coder struct {
	*pipeline
	o      inference.CodingOptions
	size   inference.Size
	net    *session
	tables *coderTables
	hash   *pictureHash
	graphs map[string]*codingGraph
	memory pointer // of the coder itself
	pool   *pool

	network, output *stage  // the network's, and the one that hashes pictures and brings them to the host
	hashing         []*part // of that, by number modulo len

	submitted, received int     // so far
	flying              []*slot // frame n's is flying[n%len]
	last                *slot   // of the frame submitted last; a reference
	lent                *slot   // what the caller got last
	closed              bool

	// The host's own work on a frame's payload is done ahead of Receive, in order, by a goroutine.
	hosting chan *slot
	hosted  chan struct{} // closed when the goroutine has ended
}

// A codingGraph is a graph bound to a coder's memory.
type codingGraph struct {
	*program
	sections []codedSection
	symbols  int64
	network  [2]*part // by parity
	gather   []*part  // encoder: by number modulo the stages that code
	coding   []*part  // likewise
}

func checkOptions(o *inference.CodingOptions) error {
	switch {
	case o.Model == nil:
		return errors.New("cuda: a coder needs a model")
	case o.W < 1 || o.H < 1:
		return fmt.Errorf("cuda: pictures of %dx%d", o.W, o.H)
	case o.InFlight < 1 || o.InFlight > inference.MaxInFlight:
		return fmt.Errorf("cuda: %d frames in flight, want 1..%d", o.InFlight, inference.MaxInFlight)
	}
	return checkSize(o.Padded())
}

// plan works out the graphs and the memory of the network, all of whose addresses count from 0 as yet.
func (c *coder) plan(o *inference.CodingOptions, w *weights, encode bool) error {
	c.o, c.size = *o, o.Padded()
	c.net = &session{weights: w, size: c.size, encode: encode, programs: map[string]*program{}}
	all, l, err := plans(o.Model, w.fused, c.size, encode, true)
	if err != nil {
		return err
	}
	c.net.layout = l
	c.graphs = map[string]*codingGraph{}
	for name, pl := range all {
		p := newProgram(pl)
		g := &codingGraph{program: p}
		for i, v := range p.coded {
			g.sections = append(g.sections, codedSection{
				name: p.sections[i].Name, symbols: c.net.address(v, 0), tables: c.net.tables(v), count: v.count(),
				skip: p.sections[i].Skip, level: p.sections[i].Level, limit: int(p.limits[i]),
			})
			g.symbols += v.count()
		}
		if err := checkSections(g.sections); err != nil {
			return err
		}
		c.net.programs[name], c.graphs[name] = p, g
	}
	return nil
}

// open makes what both directions have, on a stream for the network, or where that is nil on one of its own.
func (c *coder) open(b *backend, on machine, o *inference.CodingOptions, encode bool) error {
	c.pipeline = newPipeline(b, o.InFlight)
	c.flying = make([]*slot, slots(o))
	var err error
	if on == nil {
		if on, err = b.urgent(soon); err != nil {
			return err
		}
	}
	if c.network, err = c.stage(on); err != nil {
		return err
	}
	if c.output, err = c.stageOfItsOwn(atOnce); err != nil {
		return err
	}
	w, err := b.share(on, o.Model)
	if err != nil {
		return err
	}
	if err := c.plan(o, w, encode); err != nil {
		b.release(on, w)
		c.net = nil
		return err
	}
	c.net.backend, c.net.m = b, borrowed{on}
	if c.net.device, err = allocate(on, c.net.layout.device.bytes, c.size); err != nil {
		return err
	}
	for _, g := range c.graphs {
		for i := range g.sections {
			g.sections[i].symbols += c.net.device
			g.sections[i].tables += c.net.device
		}
	}
	if c.tables, err = newCoderTables(on, o.Model); err != nil {
		return fmt.Errorf("cuda: model %s: %w", o.Model.Name, err)
	}
	if c.hash, err = newPictureHash(on, o.W, o.H, c.size.W, c.size.H); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return nil
}

// slots is how many a coder has: for every frame in flight, and for the one that the caller got last.
func slots(o *inference.CodingOptions) int { return o.InFlight + 1 }

// reserve takes the coder's own memory.
func (c *coder) reserve(device int64, l *slotLayout) (err error) {
	if c.memory, err = allocate(c.network.m, device, c.size); err != nil {
		return err
	}
	c.pool, err = newPool(c.network.m, len(c.flying), l, &c.o, c.backend.poison)
	return err
}

// allocate takes device memory, or says how much was wanted and how much there is.
func allocate(m machine, bytes int64, size inference.Size) (pointer, error) {
	if free, err := m.available(); err == nil && bytes > free {
		return 0, fmt.Errorf("cuda: %dx%d needs %d MiB of device memory, %d MiB are free", size.W, size.H, bytes>>20, free>>20)
	}
	p, err := m.alloc(bytes)
	if err != nil {
		return 0, fmt.Errorf("cuda: %d MiB of device memory: %w", bytes>>20, err)
	}
	return p, nil
}

// slot of frame n, which is in flight.
func (c *coder) slot(n int) *slot { return c.flying[n%len(c.flying)] }

// take begins frame n's slot.
func (c *coder) take(n int) *slot {
	s := c.pool.take()
	s.number = n
	c.flying[n%len(c.flying)] = s
	return s
}

// host begins the goroutine.
func (c *coder) host(work func(s *slot) error) {
	c.hosting, c.hosted = make(chan *slot, c.o.InFlight), make(chan struct{})
	go func() {
		defer close(c.hosted)
		for s := range c.hosting {
			s.err = work(s)
			s.ready <- struct{}{}
		}
	}()
}

// follow makes s the frame submitted last, whose vectors are coded against those of the one before.
func (c *coder) follow(s *slot) {
	if c.last != nil && c.last.graph.needs.vectors {
		s.before = c.last.retain()
	}
	c.last.release()
	c.last = s.retain()
}

// vectorsBefore is the field that the slot's vectors are coded against, nil for zero.
func (s *slot) vectorsBefore() []int16 {
	if s.before == nil {
		return nil
	}
	return s.before.vectors
}

// lend hands the oldest frame in flight to the caller, and takes back the one before it.
func (c *coder) lend() {
	c.lent.release()
	c.lent = c.slot(c.received)
	c.lent.before.release()
	c.lent.before = nil
	c.flying[c.received%len(c.flying)] = nil
	c.received++
}

// failed names the pipeline's error.
func (c *coder) failed() error {
	if c.err == nil {
		return nil
	}
	return fmt.Errorf("cuda: %w", c.err)
}

// blocksOf counts the 16x16 blocks of a picture down and across.
func (c *coder) blocksOf() (hb, wb int) { return c.size.H / 16, c.size.W / 16 }

func (c *coder) close(parts []*part, rest ...func() error) error {
	if c.closed {
		return nil
	}
	c.closed = true
	if c.hosting != nil {
		close(c.hosting)
		<-c.hosted
	}
	err := c.sync()
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	for _, g := range c.graphs {
		parts = append(append(append(parts, g.network[:]...), g.gather...), g.coding...)
	}
	parts = append(parts, c.hashing...)
	for _, p := range parts {
		if p != nil && p.captured != nil {
			keep(p.captured.close())
		}
	}
	for _, f := range rest {
		keep(f())
	}
	if c.network != nil {
		m := c.network.m
		if c.pool != nil {
			keep(c.pool.close())
		}
		if c.memory != 0 {
			keep(m.free(c.memory))
		}
		if c.hash != nil {
			keep(c.hash.release(m))
		}
		if c.tables != nil {
			keep(c.tables.release(m))
		}
	}
	if c.net != nil {
		keep(c.net.Close())
	}
	keep(c.pipeline.close())
	if err != nil {
		return fmt.Errorf("cuda: close: %w", err)
	}
	return nil
}
