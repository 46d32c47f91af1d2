package codec

import (
	"fmt"
	"slices"

	"github.com/nvcodec/nvcodec/yuv"
)

// FrameType says which of the model's graphs codes a frame.
type FrameType uint8

const (
	Intra FrameType = iota // needs no other frame; begins a GOP
	Inter                  // predicted from the frame before, with the memory that it left
	Reset                  // predicted from the frame before, with a memory rebuilt from its picture alone
)

// String returns the name of the frame's graph in the model file.
func (t FrameType) String() string {
	return [...]string{"intra", "inter", "reset", "reserved"}[t&3]
}

// Flags of a frame record.
const (
	recordType      = 3      // FrameType
	recordQP        = 1 << 2 // qp follows
	recordPTS       = 1 << 3 // pts_delta follows
	recordThreshold = 1 << 4 // threshold follows
	recordLanes     = 1 << 5 // lanes_log2 follows
	recordLast      = 1 << 6 // the chunk's last frame; hash_high follows
	recordReserved  = 1 << 7
)

const (
	maxChunkFrames = 32
	maxQP          = 63
	maxThreshold   = 64
	maxLanesLog2   = 10
	maxFrames      = 1 << 48
)

var gopSync = []byte{0x9e, 'G', 'O', 'P'}

// A record is one frame in the stream.
type record struct {
	typ       FrameType
	last      bool // in its chunk
	qp        int
	threshold int
	lanes     int
	pts       int64
	hashHigh  uint16 // the high half of the picture hash, only when last; the low half rides in the payload
	payload   []byte
}

// A gopHeader stands before the first record of a 'G' chunk: what the GOP's records are implied from. A GOP depends on
// nothing before it but the stream's header.
type gopHeader struct {
	frame     int64 // number in the stream of the intra frame
	pts       int64 // of the intra frame
	qpI, qpP  int
	threshold int
}

func (g *gopHeader) append(dst []byte) []byte {
	dst = append(dst, gopSync...)
	dst = appendVarint(dst, uint64(g.frame))
	dst = appendSigned(dst, g.pts)
	return append(dst, uint8(g.qpI), uint8(g.qpP), uint8(g.threshold))
}

func parseGOPHeader(f *fields) gopHeader {
	if sync := f.bytes("sync", len(gopSync)); sync != nil && string(sync) != string(gopSync) {
		f.fail(f.pos-len(gopSync), "sync", "% x, want % x", sync, gopSync)
	}
	g := gopHeader{frame: int64(f.varint("frame_number", 0, maxFrames))}
	at := f.pos
	g.pts = f.signed("pts")
	if g.pts <= -maxPTS || g.pts >= maxPTS {
		f.fail(at, "pts", "%d, outside ±2^60", g.pts)
	}
	g.qpI = int(f.u8("qp_i", maxQP))
	g.qpP = int(f.u8("qp_p", maxQP))
	g.threshold = int(f.u8("threshold", maxThreshold))
	return g
}

// implied is what a frame has unless its record says otherwise. Encoder and decoder keep one each and show it every
// record.
type implied struct {
	gop       gopHeader
	shift     [8]uint8
	clock     clock
	k         int64 // of the next frame: 0 the intra frame, 1 the frame after it …
	threshold int
	lanes     [2]int // of intra, of other frames
}

func newImplied(h *Header) implied {
	return implied{shift: h.QPShift, clock: newClock(h.TimeBase, h.FrameRate)}
}

func (p *implied) start(g gopHeader) {
	p.gop = g
	p.clock.start(g.frame, g.pts)
	p.k = 0
	p.threshold = g.threshold
	p.lanes = [2]int{1, 1}
}

// qpOf returns the QP of frame k of a GOP by the pattern.
func qpOf(k int64, qpI, qpP int, shift *[8]uint8) int {
	if k == 0 {
		return qpI
	}
	return max(0, qpP-int(shift[(k-1)%8]))
}

// record returns a record of the given type with every field at its implied value.
func (p *implied) record(t FrameType) record {
	r := record{typ: t, qp: qpOf(p.k, p.gop.qpI, p.gop.qpP, &p.shift), threshold: p.threshold, lanes: *p.lanesOf(t)}
	if p.k == 0 {
		r.pts = p.gop.pts
	} else {
		r.pts = p.clock.next()
	}
	return r
}

func (p *implied) lanesOf(t FrameType) *int { return &p.lanes[min(t, 1)] }

// saw moves on to the frame after r.
func (p *implied) saw(r *record) error {
	if p.k > 0 {
		if err := p.clock.set(r.pts); err != nil {
			return err
		}
	}
	p.threshold = r.threshold
	*p.lanesOf(r.typ) = r.lanes
	p.k++
	return nil
}

// append writes r as if others followed in its chunk, and moves on.
func (p *implied) append(dst []byte, r *record) ([]byte, error) {
	want := p.record(r.typ)
	flags := uint8(r.typ)
	if r.qp != want.qp {
		flags |= recordQP
	}
	if r.pts != want.pts {
		flags |= recordPTS
	}
	if r.threshold != want.threshold {
		flags |= recordThreshold
	}
	if r.lanes != want.lanes {
		flags |= recordLanes
	}
	dst = append(dst, flags)
	dst = appendVarint(dst, uint64(len(r.payload)))
	if flags&recordQP != 0 {
		dst = append(dst, uint8(r.qp))
	}
	if flags&recordPTS != 0 {
		dst = appendSigned(dst, r.pts-want.pts)
	}
	if flags&recordThreshold != 0 {
		dst = append(dst, uint8(r.threshold))
	}
	if flags&recordLanes != 0 {
		dst = append(dst, lanesLog2(r.lanes))
	}
	return append(dst, r.payload...), p.saw(r)
}

// markLast turns the record that begins at start and ends b, payload bytes of which are payload, into its chunk's last.
func markLast(b []byte, start, payload int, hashHigh uint16) []byte {
	b[start] |= recordLast
	return slices.Insert(b, len(b)-payload, uint8(hashHigh), uint8(hashHigh>>8))
}

// lanesLog2 of a lane count, a power of two in 1..1024.
func lanesLog2(lanes int) uint8 {
	n := uint8(0)
	for ; 1<<n < lanes; n++ {
	}
	if 1<<n != lanes || n > maxLanesLog2 {
		panic(fmt.Sprintf("codec: %d lanes", lanes))
	}
	return n
}

// parse reads the record at f and moves on; what it returns is valid only without an error in f.
func (p *implied) parse(f *fields) record {
	at := f.pos
	flags := f.u8("record_flags", 255)
	typ := FrameType(flags & recordType)
	switch {
	case f.err != nil:
	case flags&recordReserved != 0:
		f.fail(at, "record_flags", "reserved bit 7 is set")
	case typ > Reset:
		f.fail(at, "record_flags", "frame type 3 is reserved")
	case p.k == 0 && typ != Intra:
		f.fail(at, "record_flags", "%v frame begins a GOP", typ)
	case p.k > 0 && typ == Intra:
		f.fail(at, "record_flags", "intra frame inside a GOP")
	case p.k == 1 && typ != Reset:
		f.fail(at, "record_flags", "%v frame after an intra frame, which leaves no memory", typ)
	}
	if f.err != nil {
		return record{}
	}
	r := p.record(typ)
	r.last = flags&recordLast != 0
	length := f.varint("payload_len", 0, maxChunk)
	if flags&recordQP != 0 {
		r.qp = int(f.u8("qp", maxQP))
	}
	if flags&recordPTS != 0 {
		if p.k == 0 {
			f.fail(at, "record_flags", "pts_delta on an intra frame")
		}
		r.pts = addTimes(r.pts, f.signed("pts_delta"))
	}
	if flags&recordThreshold != 0 {
		r.threshold = int(f.u8("threshold", maxThreshold))
	}
	if flags&recordLanes != 0 {
		r.lanes = 1 << f.u8("lanes_log2", maxLanesLog2)
	}
	if r.last {
		r.hashHigh = f.u16("hash_high")
	}
	r.payload = f.bytes("payload", int(length))
	if f.err != nil {
		return record{}
	}
	if err := p.saw(&r); err != nil {
		f.fail(at, "pts_delta", "%v", err)
	}
	return r
}

// addTimes adds a stated difference to an implied time, itself below 2^63 − 2^61; the sum saturates, which the clock
// then refuses.
func addTimes(pts, delta int64) int64 {
	return pts + min(max(delta, -2*maxPTS), 2*maxPTS)
}

// Frame rate and time base make up a frame's nominal duration in ticks, 0 when the rate is unknown.
func nominalDuration(f *yuv.Format) int64 {
	c := newClock(f.TimeBase, f.FrameRate)
	if !c.rate {
		return 0
	}
	c.start(0, 0)
	return c.next()
}
