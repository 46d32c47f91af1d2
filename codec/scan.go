package codec

import (
	"errors"
	"io"
)

// Info is what a stream says of itself, without a picture decoded.
type Info struct {
	Header   Header
	Metadata []Entry
	Size     int64   // bytes of the stream
	Footer   *Footer // nil when the stream has none that is whole
	Complete bool    // the stream ends with a footer; Scan has also found no damage before it

	// Scan counts these, Peek takes them from the footer.
	Frames, GOPs int64

	// Scan alone fills these.
	Records []FrameInfo // of the first 2^20 frames
	Damage  []error     // each *CorruptError, ErrTruncated or ErrUnsupported met, in order; of the first 1000

	payload             int64
	first, last         int64 // times of the frames
	qpI, qpP, threshold int   // of the first GOP, −1 when there is none
}

// A stream of nothing but tiny records must not cost many times its own size in memory.
const (
	maxRecords = 1 << 20
	maxDamage  = 1000
)

// Setting returns the value of the first metadata entry with the given key.
func (i *Info) Setting(key string) (string, bool) {
	for _, e := range i.Metadata {
		if e.Key == key {
			return e.Value, true
		}
	}
	return "", false
}

// PayloadBytes sums the frames' payloads: the stream without its structure. Scan alone counts it.
func (i *Info) PayloadBytes() int64 { return i.payload }

// Seconds returns how long the video lasts: as its footer says, else from the first frame's time to one nominal
// duration behind the last's.
func (i *Info) Seconds() float64 {
	ticks := int64(0)
	if i.Footer != nil {
		ticks = i.Footer.Duration
	} else if i.Frames > 0 {
		ticks = i.last - i.first + nominalDuration(&i.Header.Format)
	}
	return float64(ticks) * float64(i.Header.TimeBase.Num) / float64(i.Header.TimeBase.Den)
}

// add counts a frame.
func (i *Info) add(frame FrameInfo) {
	if i.Frames == 0 {
		i.first = frame.PTS
	}
	i.last = frame.PTS
	i.Frames++
	if frame.Type == Intra {
		i.GOPs++
	}
	i.payload += int64(frame.PayloadBytes)
	if len(i.Records) < maxRecords {
		i.Records = append(i.Records, frame)
	}
}

// damage keeps an error.
func (i *Info) damage(err error) {
	if len(i.Damage) < maxDamage {
		i.Damage = append(i.Damage, err)
	}
}

// Peek reads a stream's header, the metadata before its first frame, and its footer: enough to tell whether a file is
// whole, and made with which settings. Damage between them goes unseen.
func Peek(r io.ReaderAt, size int64) (*Info, error) {
	p, info, err := open(r, size)
	if err != nil {
		return nil, err
	}
	info.Metadata = p.metadata
	if info.Footer, err = readFooter(r, size, p.first()); info.Footer != nil {
		info.Complete = true
		info.Frames, info.GOPs = info.Footer.Frames, int64(len(info.Footer.GOPs))
	}
	return info, err
}

// Scan reads a whole stream and lists its frames without decoding them. Damage is listed, not returned: the error is
// about the header, or the reader's own.
func Scan(r io.ReaderAt, size int64) (*Info, error) {
	p, info, err := open(r, size)
	if err != nil {
		return nil, err
	}
	for {
		_, frame, err := p.next()
		info.Metadata, info.Footer = p.metadata, p.footer
		var bad *CorruptError
		switch {
		case err == nil:
			info.add(frame)
		case err == io.EOF:
			info.Complete = len(info.Damage) == 0
			return info, nil
		case errors.As(err, &bad):
			info.damage(err)
		case errors.Is(err, ErrTruncated), errors.Is(err, ErrUnsupported):
			info.damage(err)
			return info, nil
		default:
			return info, err
		}
	}
}

// open reads a stream up to its first frame.
func open(r io.ReaderAt, size int64) (*parser, *Info, error) {
	p, err := newParser(io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, nil, err
	}
	p.preamble()
	info := &Info{Header: p.header, Size: size, qpI: -1, qpP: -1, threshold: -1}
	if g := p.implied.gop; p.gop == inGOP {
		info.qpI, info.qpP, info.threshold = g.qpI, g.qpP, g.threshold
	}
	return p, info, nil
}

// readFooter finds the footer from the end of a file; nil when there is none.
func readFooter(r io.ReaderAt, size, first int64) (*Footer, error) {
	tail := make([]byte, footerTail)
	if size-first < footerTail {
		return nil, nil
	}
	if err := readAt(r, tail, size-footerTail); err != nil {
		return nil, err
	}
	n := int64(footerSize(tail))
	if n > size-first || n < footerTail {
		return nil, nil
	}
	b := make([]byte, n)
	if err := readAt(r, b, size-n); err != nil {
		return nil, err
	}
	return footerAtEnd(b, size-n, first), nil
}

func readAt(r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	return err
}
