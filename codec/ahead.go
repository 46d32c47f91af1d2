package codec

import (
	"fmt"

	"github.com/nvcodec/nvcodec/inference"
)

// pending is a frame that the decoder has read ahead and handed to its coder, or what stopped the reading.
type pending struct {
	record record // without its payload
	info   FrameInfo
	err    error // the parser's
	behind mark  // where reading goes on should the frame turn out damaged
}

// A mark is a place to go back to.
type mark struct {
	parser parser
	offset int64
}

func (p *parser) mark() mark { return mark{*p, p.w.offset} }

// rewind goes back to m, which the window must have kept.
func (p *parser) rewind(m *mark) {
	w := p.w
	*p = m.parser
	w.rewind(m.offset)
	if n := len(p.body.b); n > 0 { // the window may have moved it
		p.body.b = w.buf[w.start+int(p.body.offset-w.offset):][:n]
	}
}

// readAhead has as many frames in flight as there may be. It stops behind an error of the stream, which waits for its
// turn.
func (d *Decoder) readAhead() {
	for len(d.pending) < d.inFlight && (len(d.pending) == 0 || d.pending[len(d.pending)-1].err == nil) {
		r, info, err := d.parser.next()
		if err == nil {
			err = d.submit(&r, info.Number)
		}
		r.payload = nil
		d.pending = append(d.pending, pending{r, info, err, d.parser.mark()})
	}
}

func (d *Decoder) submit(r *record, number int64) error {
	err := d.coder.Submit(&inference.CodedFrame{
		Graph: r.typ.String(), QP: r.qp, Threshold: r.threshold, Lanes: r.lanes, Payload: r.payload,
	})
	if err != nil {
		d.parser.skip()
		return fmt.Errorf("codec: frame %d: %w", number, err)
	}
	return nil
}

// take removes the oldest frame read ahead; the bytes before the others can go.
func (d *Decoder) take() pending {
	p := d.pending[0]
	d.pending = d.pending[:copy(d.pending, d.pending[1:])]
	if len(d.pending) > 0 {
		d.parser.w.keep(d.pending[0].behind.offset)
	} else {
		d.parser.w.keep(d.parser.w.offset)
	}
	return p
}

// giveUp drops what is in flight behind a frame that failed, and reads on from there with the next GOP.
func (d *Decoder) giveUp(p *pending) error {
	d.parser.rewind(&p.behind)
	d.parser.skip()
	return d.forget()
}

// forget drops what is in flight.
func (d *Decoder) forget() error {
	d.pending = d.pending[:0]
	return d.coder.Reset()
}
