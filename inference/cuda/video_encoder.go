//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/nvcodec/nvcodec/codec/motion"
	"github.com/nvcodec/nvcodec/entropy"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/yuv"
)

// An encoder codes whole frames. A frame's way, p its number's parity:
//
//	prepare  raw picture → source[p], padded; costs of a scene cut against source[1-p]
//	search   source[p], pictures[p], vectors[1-p] → vectors[p]
//	network  source[p], vectors[p], pictures[p], state → pictures[1-p], state, symbols; these gathered → scratch[k]
//	output   pictures[1-p] → hash[k] and the slot
//	coding   hash[k], scratch[k] → coded lanes in the slot
//
// and the host puts the vectors in front. Each stage is a stream of its own and waits for what it reads to be written,
// and for what it writes to be read. A frame's lanes are few and take long, but frames' are independent of each other:
// there are several streams for coding, and k is the number of the frame's.
type encoder struct {
	coder
	prepare, search *stage
	coding          []*stage

	copier    *copier
	searching *searchTables
	writer    *payloadWriter
	at        encoderMemory
	pad, cut  [2]*part // by parity
	find      [2]*part

	loaded  int
	coded   inference.Coded
	payload entropy.Payload // the vectors of the frame that finish is at
}

// An encoderMemory says where things begin in the encoder's own memory.
type encoderMemory struct {
	raw, costs, cutting, frame, searching int64
	hash, scratch                         []int64
	scratchBytes                          int64
}

// mostCoding is how many frames are coded at a time, a power of two.
const mostCoding = 4

// codingStages is how many stages for coding an encoder has use for.
func (e *encoder) codingStages() int {
	n := mostCoding
	for n > e.o.InFlight {
		n /= 2
	}
	return n
}

// k is the number of frame n's stage.
func (e *encoder) k(n int) int { return n % e.codingStages() }

// OpenEncoder plans every graph, takes all memory and makes the streams.
func (b *backend) OpenEncoder(o *inference.CodingOptions) (inference.FrameEncoder, error) {
	return b.openEncoder(nil, o)
}

// OpenEncoderOn is OpenEncoder with the network on a stream of the caller's, in order with what else that stream is
// given; the other stages wait for it and it waits for them.
func (b *backend) OpenEncoderOn(on *Stream, o *inference.CodingOptions) (inference.FrameEncoder, error) {
	return b.openEncoder(borrowed{on.m}, o)
}

func (b *backend) openEncoder(on machine, o *inference.CodingOptions) (inference.FrameEncoder, error) {
	if err := checkOptions(o); err != nil {
		return nil, err
	}
	e := &encoder{}
	if err := e.open(b, on, o); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func (e *encoder) open(b *backend, on machine, o *inference.CodingOptions) error {
	if err := e.coder.open(b, on, o, true); err != nil {
		return err
	}
	var err error
	// Frames wait for frames in network and search. The host waits for scene cuts, and what little coding takes of a device
	// comes first; searches fill what the others leave.
	if e.prepare, err = e.stageOfItsOwn(atOnce); err != nil {
		return err
	}
	if e.search, err = e.stageOfItsOwn(whenever); err != nil {
		return err
	}
	for range e.codingStages() {
		s, err := e.stageOfItsOwn(atOnce)
		if err != nil {
			return err
		}
		e.coding = append(e.coding, s)
	}
	if e.searching, err = newSearchTables(e.network.m, o.Model); err != nil {
		return err
	}
	e.copier = newCopier(o.Threads)
	e.writer = newPayloadWriter(e.tables)
	if err := e.reserve(e.layout()); err != nil {
		return err
	}
	if err := e.assemble(); err != nil {
		return err
	}
	e.host(e.finish)
	return nil
}

// rawBytes is the size of a picture as it is loaded.
func rawBytes(w, h int) int64 {
	return int64(w)*int64(h) + 2*int64((w+1)/2)*int64((h+1)/2)
}

// layout says how much device memory the encoder takes beside the network's, and what a slot has.
func (e *encoder) layout() (device int64, slot *slotLayout) {
	var m layoutOf
	w, h := e.size.W, e.size.H
	slot = &slotLayout{vectors: e.net.layout.field, raw: rawBytes(e.o.W, e.o.H), cut: 16}
	if e.o.Pictures {
		slot.picture = e.net.layout.picture
	}
	e.at.raw = m.take(slot.raw)
	e.at.costs = m.take(slot.cut)
	e.at.cutting = m.take(cutBytes(w, h))
	e.at.frame = m.take(int64(unsafe.Sizeof(frameParameters{})))
	e.at.searching = m.take(searchBytes(w, h, e.o.Reach))
	for _, g := range e.graphs {
		scratch, result := encodeLayout(g.sections)
		e.at.scratchBytes, slot.result = max(e.at.scratchBytes, scratch), max(slot.result, result)
	}
	for range e.codingStages() {
		e.at.hash = append(e.at.hash, m.take(4))
		e.at.scratch = append(e.at.scratch, m.take(e.at.scratchBytes))
	}
	return m.bytes, slot
}

func (e *encoder) own(at int64) pointer { return e.memory + pointer(at) }

// place is a buffer of the network's that exists twice.
func (c *coder) place(at [2]int64, parity int) pointer { return c.net.device + pointer(at[parity&1]) }

// assemble prepares every launch.
func (e *encoder) assemble() error {
	l, w, h := &e.net.layout, e.size.W, e.size.H
	for p := range 2 {
		source, before := e.place(l.source, p), e.place(l.source, 1-p)
		var err error
		if e.pad[p], err = e.prepare.part(padCalls(source, e.own(e.at.raw), e.o.W, e.o.H, w, h)); err != nil {
			return err
		}
		if e.cut[p], err = e.prepare.part(cutCalls(e.searching, e.own(e.at.costs), source, before, e.own(e.at.cutting), w, h)); err != nil {
			return err
		}
		if e.find[p], err = e.search.part(searchCalls(e.searching, e.place(l.vectors, p), source, e.place(l.pictures, p), e.place(l.vectors, 1-p),
			e.own(e.at.frame), e.own(e.at.searching), w, h, e.o.Reach)); err != nil {
			return err
		}
		for _, g := range e.graphs {
			if g.network[p], err = e.network.part(e.net.frameCalls(g.plan, p, nil)); err != nil {
				return err
			}
		}
	}
	for k, coding := range e.coding {
		for _, g := range e.graphs {
			gather, err := e.network.part(gatherCalls(e.tables, g.sections, e.net.frameParameters(), e.own(e.at.scratch[k])))
			if err != nil {
				return err
			}
			encode, err := coding.part(encodeCalls(e.tables, g.sections, e.own(e.at.hash[k]), e.own(e.at.scratch[k])))
			if err != nil {
				return err
			}
			g.gather, g.coding = append(g.gather, gather), append(g.coding, encode)
		}
	}
	for n := range max(2, len(e.coding)) { // parities and stages in all their combinations
		hash, err := e.output.part(e.hash.calls(e.own(e.at.hash[e.k(n)]), e.place(l.pictures, n+1), 0))
		if err != nil {
			return err
		}
		e.hashing = append(e.hashing, hash)
	}
	return nil
}

func (e *encoder) Load(src *yuv.Planes) error {
	switch {
	case e.err != nil:
		return e.failed()
	case e.closed:
		return errors.New("cuda: encoder is closed")
	case e.loaded > e.submitted:
		return errors.New("cuda: the picture loaded before was not submitted")
	case e.loaded-e.received == e.o.InFlight:
		return fmt.Errorf("cuda: %d frames are in flight already", e.o.InFlight)
	case src.W != e.o.W || src.H != e.o.H:
		return fmt.Errorf("cuda: picture of %dx%d, the encoder's are %dx%d", src.W, src.H, e.o.W, e.o.H)
	}
	n := e.loaded
	s := e.take(n)
	e.copier.copy(s.loaded, src)
	// The raw picture before has been padded, on this same stream.
	e.prepare.put(e.own(e.at.raw), s.raw)
	e.prepare.after(e.network, n-2)
	source := e.place(e.net.layout.source, n)
	e.prepare.poison(source, e.net.layout.picture)
	e.prepare.do(e.pad[n&1])
	if n > 0 {
		e.prepare.do(e.cut[n&1])
		e.prepare.get(s.cut, e.own(e.at.costs))
	}
	e.prepare.done(n)
	e.loaded++
	return e.failed()
}

func (e *encoder) Cut() (bool, error) {
	n := e.loaded - 1
	if n < 1 || e.err != nil {
		return false, e.failed()
	}
	if n < e.submitted {
		return false, errors.New("cuda: no picture is loaded")
	}
	e.prepare.await(n)
	costs := structure[[2]int64](e.slot(n).cut)
	return motion.Cut(costs[0], costs[1]), e.failed()
}

func (e *encoder) Submit(f *inference.Frame) error {
	if e.err != nil {
		return e.failed()
	}
	if e.submitted == e.loaded {
		return errors.New("cuda: no picture is loaded")
	}
	if _, err := e.net.check(f); err != nil {
		return err
	}
	n := e.submitted
	s, g, l := e.slot(n), e.graphs[f.Graph], &e.net.layout
	*structure[frameParameters](s.params) = frameParameters{QP: int32(f.QP), Threshold: int32(f.Threshold), Result: mapped(s.result)}
	if g.needs.vectors && f.Vectors != nil {
		if err := e.net.checkVectors(f.Vectors); err != nil {
			return err
		}
		copy(s.vectors, f.Vectors)
	}
	s.graph = g
	e.follow(s)
	if g.needs.vectors {
		e.search.after(e.prepare, n) // and so after network n-2, which reads the vectors that n's replace
		if f.Vectors != nil {
			e.search.put(e.place(l.vectors, n), s.field)
		} else {
			if s.before == nil {
				e.search.zero(e.place(l.vectors, n-1), l.field)
			}
			e.search.after(e.network, n-1) // whose picture it compares with
			e.search.poison(e.place(l.vectors, n), l.field)
			e.search.put(e.own(e.at.frame), s.params)
			e.search.do(e.find[n&1])
			e.search.get(s.field, e.place(l.vectors, n))
		}
	}
	e.search.done(n)

	k, coding := e.k(n), e.coding[e.k(n)]
	e.network.after(e.prepare, n)
	e.network.after(e.search, n)
	e.network.after(e.output, n-2)
	e.network.poison(e.place(l.pictures, n+1), l.picture)
	e.network.put(e.net.frameParameters(), s.params)
	e.network.do(g.network[n&1])
	e.network.after(coding, n-len(e.coding))
	e.network.poison(e.own(e.at.scratch[k]), e.at.scratchBytes)
	e.network.do(g.gather[k])
	e.network.done(n)

	e.output.after(e.network, n)
	e.output.do(e.hashing[n%len(e.hashing)])
	if e.o.Pictures {
		e.output.get(s.picture, e.place(l.pictures, n+1))
	}
	e.output.done(n)

	coding.after(e.output, n) // and so after the network
	coding.do(g.coding[k])
	coding.done(n)
	if e.err != nil {
		return e.failed()
	}
	e.net.end(g.program)
	e.submitted++
	e.hosting <- s
	return nil
}

func (e *encoder) Receive() (*inference.Coded, error) {
	switch {
	case e.err != nil:
		return nil, e.failed()
	case e.received == e.submitted:
		return nil, errors.New("cuda: no frame is in flight")
	}
	s := e.slot(e.received)
	<-s.ready
	e.output.await(s.number)
	if e.err == nil {
		e.err = s.err
	}
	if e.err != nil {
		return nil, e.failed()
	}
	e.lend()
	r := structure[encoderResult](s.result)
	e.coded = inference.Coded{Payload: s.payload, Lanes: int(r.Lanes), Hash: r.Hash, Picture: s.shown}
	if s.graph.needs.vectors {
		e.coded.Vectors = s.vectors
	}
	return &e.coded, nil
}

// finish waits for what the device has coded and puts the vectors in front.
func (e *encoder) finish(s *slot) (err error) {
	if err := e.coding[e.k(s.number)].event(s.number).sync(); err != nil {
		return err
	}
	hb, wb := e.blocksOf()
	e.payload = entropy.Payload{HB: hb, WB: wb, VectorsBefore: s.vectorsBefore()}
	if s.graph.needs.vectors {
		e.payload.Vectors = s.vectors
	}
	s.payload, err = e.writer.append(s.payload[:0], s.result, &e.payload)
	return err
}

// Close waits for what is in flight and gives everything back.
func (e *encoder) Close() error {
	parts := append(append(e.pad[:], e.cut[:]...), e.find[:]...)
	return e.close(parts, func() error {
		if e.copier != nil {
			e.copier.close()
		}
		if e.searching == nil {
			return nil
		}
		return e.searching.close()
	})
}
