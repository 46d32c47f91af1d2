package codec

import (
	"errors"
	"fmt"
	"io"
	"sort"
)

// ErrNoIndex says that a stream cannot be entered in the middle: its reader does not seek, or it has no footer.
var ErrNoIndex = errors.New("codec: stream has no index to seek by")

// SeekTo makes Next go on with the last GOP that begins at or before pts, or with the first one; the frames of that
// GOP before pts are the caller's to drop. The stream must come from an io.ReadSeeker and be whole.
func (d *Decoder) SeekTo(pts int64) (err error) {
	s, ok := d.source.(io.ReadSeeker)
	if !ok || d.base < 0 {
		return ErrNoIndex
	}
	defer func() {
		if err != nil { // go on where reading stopped
			s.Seek(d.base+d.parser.w.end(), io.SeekStart)
		}
	}()
	end, err := s.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("codec: seeking: %w", err)
	}
	ft, err := readFooter(seekerAt{s, d.base}, end-d.base, d.parser.first())
	if err != nil {
		return fmt.Errorf("codec: reading the footer: %w", err)
	}
	if ft == nil {
		return ErrNoIndex
	}
	if len(ft.GOPs) == 0 {
		return ErrNoIndex
	}
	n := sort.Search(len(ft.GOPs), func(i int) bool { return ft.GOPs[i].PTS > pts })
	g := ft.GOPs[max(n-1, 0)]
	if _, err := s.Seek(d.base+g.Offset, io.SeekStart); err != nil {
		return fmt.Errorf("codec: seeking: %w", err)
	}
	if err := d.forget(); err != nil {
		return err
	}
	d.ended = false
	h := d.parser.header
	d.parser = &parser{
		w: &window{r: s, offset: g.Offset}, header: h, metadata: d.preamble, metaSize: 0, implied: newImplied(&h), frames: g.Frame,
	}
	d.parser.w.keep(g.Offset)
	return nil
}

// A seekerAt reads at offsets from base on by moving the seeker.
type seekerAt struct {
	s    io.ReadSeeker
	base int64
}

func (s seekerAt) ReadAt(b []byte, offset int64) (int, error) {
	if _, err := s.s.Seek(s.base+offset, io.SeekStart); err != nil {
		return 0, err
	}
	return io.ReadFull(s.s, b)
}
