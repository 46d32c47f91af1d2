package codec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/nvcodec/nvcodec/convert/tables"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
	"github.com/nvcodec/nvcodec/yuv"
)

// testModel is a small network of random weights, with the tables that a codec needs besides.
var testModel = sync.OnceValue(func() *inference.Model { return completeModel(inferencetest.TinyModel(1)) })

// smallestModel is for tests that decode hundreds of times.
var smallestModel = sync.OnceValue(func() *inference.Model {
	return completeModel(inferencetest.New(3, inferencetest.Config{C: 8, YIntra: 4, YInter: 4, Z: 4}))
})

func completeModel(m *inference.Model) *inference.Model {
	add := func(name, typ string, shape []int, value func(i int) int64) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		data := make([]int64, n)
		for i := range data {
			data[i] = value(i)
		}
		t, err := inference.NewTensor(name, typ, shape, data)
		if err != nil {
			panic(err)
		}
		m.Tensors[name] = t
	}
	add("qp.shift", "U8", []int{8}, func(i int) int64 { return int64(qpPatterns[1][i]) })
	for _, t := range tables.All() {
		add(t.Name, t.Type, t.Shape, func(i int) int64 { return t.Data[i] })
	}
	if _, err := inference.Marshal(m); err != nil { // sets the identity
		panic(err)
	}
	return m
}

func testOptions() EncoderOptions {
	o := DefaultOptions()
	o.Model, o.Backend, o.Threads = testModel(), inference.Backends()[0], 1
	o.Reach = 16
	o.SceneCut = false // tests of GOPs want to know where they begin
	return o
}

func testDecoderOptions() DecoderOptions { return decoderOptionsOf(testOptions()) }

func decoderOptionsOf(o EncoderOptions) DecoderOptions {
	return DecoderOptions{Models: onlyModel(o.Model), Backend: o.Backend, Threads: o.Threads}
}

func onlyModel(m *inference.Model) func([32]byte) (*inference.Model, error) {
	return func(id [32]byte) (*inference.Model, error) { return m, nil }
}

// video makes n frames of a picture that moves, a second scene from frame cut on (none when 0).
func video(w, h, n, cut int) []*yuv.Frame {
	var frames []*yuv.Frame
	for t := range n {
		f := &yuv.Frame{Planes: *yuv.New(w, h), PTS: int64(t), Duration: 1}
		seed, scene := t*3, 0
		if cut > 0 && t >= cut {
			seed, scene = t*2, 77
		}
		rnd := rand.New(rand.NewPCG(uint64(scene), 9))
		texture := [64]int{}
		for i := range texture {
			texture[i] = int(rnd.UintN(120))
		}
		paint := func(p []byte, stride, w, h, scale int) {
			for y := range h {
				for x := range w {
					u, v := x*scale+seed, y*scale+seed/2
					p[y*stride+x] = byte(40 + scene + texture[(u>>4&7)*8+v>>4&7] + (u+v)&15)
				}
			}
		}
		paint(f.Y, f.StrideY, w, h, 1)
		paint(f.U, f.StrideC, f.CW(), f.CH(), 2)
		paint(f.V, f.StrideC, f.CW(), f.CH(), 2)
		frames = append(frames, f)
	}
	return frames
}

// ramps makes n frames of a diagonal ramp that moves: next to nothing to code.
func ramps(w, h, n int) []*yuv.Frame {
	var frames []*yuv.Frame
	for t := range n {
		f := &yuv.Frame{Planes: *yuv.New(w, h), PTS: int64(t), Duration: 1}
		for i := range f.Y {
			f.Y[i] = byte(60 + 2*(i%w+i/w+t))
		}
		for i := range f.U {
			f.U[i], f.V[i] = 128, 120
		}
		frames = append(frames, f)
	}
	return frames
}

// noise makes n frames of noise: as much to code as there can be.
func noise(w, h, n int) []*yuv.Frame {
	rnd := rand.New(rand.NewPCG(7, 7))
	var frames []*yuv.Frame
	for t := range n {
		f := &yuv.Frame{Planes: *yuv.New(w, h), PTS: int64(t), Duration: 1}
		for _, p := range [][]byte{f.Y, f.U, f.V} {
			for i := range p {
				p[i] = byte(rnd.Uint32())
			}
		}
		frames = append(frames, f)
	}
	return frames
}

func formatOf(frames []*yuv.Frame) yuv.Format {
	h := plainHeader()
	h.W, h.H = frames[0].W, frames[0].H
	return h.Format
}

// encode returns the stream of frames and a copy of the encoder's own pictures.
func encode(t testing.TB, o EncoderOptions, frames []*yuv.Frame, f yuv.Format) ([]byte, []yuv.Planes, []FrameInfo) {
	t.Helper()
	var out bytes.Buffer
	e, err := NewEncoder(&out, f, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Abort()
	var pictures []yuv.Planes
	var infos []FrameInfo
	for _, frame := range frames {
		info, err := e.Write(context.Background(), frame)
		if err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, *info.Decoded.Clone())
		info.Decoded = nil
		infos = append(infos, info)
	}
	sum, err := e.Close()
	if err != nil {
		t.Fatal(err)
	}
	if sum.Frames != int64(len(frames)) || sum.Bytes != int64(out.Len()) {
		t.Fatalf("summary %+v of %d frames, %d bytes", sum, len(frames), out.Len())
	}
	return out.Bytes(), pictures, infos
}

type decoded struct {
	picture yuv.Planes
	pts     int64
	info    FrameInfo
}

// decodeAll decodes to the end and returns every error but io.EOF. It does so with one frame in flight and with several,
// which must not show.
func decodeAll(r io.Reader, o DecoderOptions) ([]decoded, []error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, []error{err}
	}
	o.InFlight = 1
	frames, errs := decodeWith(bytes.NewReader(b), o)
	for _, n := range []int{3, inference.MaxInFlight} {
		o.InFlight = n
		again, others := decodeWith(bytes.NewReader(b), o)
		if fmt.Sprint(others) != fmt.Sprint(errs) {
			return nil, []error{fmt.Errorf("with %d frames in flight %v, with one %v", n, others, errs)}
		}
		same := func(a, b decoded) bool {
			return samePlanes(&a.picture, &b.picture) && a.pts == b.pts && a.info == b.info
		}
		if !slices.EqualFunc(again, frames, same) {
			return nil, []error{fmt.Errorf("other frames with %d in flight", n)}
		}
	}
	return frames, errs
}

func decodeWith(r io.Reader, o DecoderOptions) (frames []decoded, errs []error) {
	d, err := NewDecoder(r, o)
	if err != nil {
		return nil, []error{err}
	}
	defer d.Close()
	for len(errs) < 1000 {
		f, info, err := d.Next(context.Background())
		var bad *CorruptError
		var hash *HashError
		switch {
		case err == nil:
			frames = append(frames, decoded{*f.Planes.Clone(), f.PTS, info})
		case err == io.EOF:
			return frames, errs
		default:
			errs = append(errs, err)
			if !errors.As(err, &bad) && !errors.As(err, &hash) {
				return frames, errs
			}
		}
	}
	return frames, errs
}

func samePlanes(a, b *yuv.Planes) bool {
	return a.W == b.W && a.H == b.H && bytes.Equal(a.Y, b.Y) && bytes.Equal(a.U, b.U) && bytes.Equal(a.V, b.V)
}

// The decoder's pictures are the encoder's own, whatever the size, settings, kernels and threads.
func TestDecoderEqualsEncoder(t *testing.T) {
	for _, c := range []struct {
		name    string
		frames  []*yuv.Frame
		options func(*EncoderOptions)
	}{
		{"64x64", video(64, 64, 12, 0), func(*EncoderOptions) {}},
		{"1x1", video(1, 1, 3, 0), func(*EncoderOptions) {}},
		{"odd", video(67, 33, 4, 0), func(*EncoderOptions) {}},
		{"wide", video(130, 3, 3, 0), func(*EncoderOptions) {}},
		{"one frame", video(20, 20, 1, 0), func(*EncoderOptions) {}},
		{"scene cut", video(64, 48, 6, 3), func(o *EncoderOptions) { o.SceneCut = true }},
		{"no scene cut", video(64, 48, 6, 3), func(*EncoderOptions) {}},
		{"resets and GOPs", video(64, 64, 14, 0), func(o *EncoderOptions) { o.ResetInterval, o.IntraPeriod = 3, 8 }},
		{"intra only", video(64, 64, 3, 0), func(o *EncoderOptions) { o.IntraPeriod = 1 }},
		{"QP 0", video(64, 64, 4, 0), func(o *EncoderOptions) { o.QPI, o.QPP = 0, 0 }},
		{"QP 63", video(64, 64, 4, 0), func(o *EncoderOptions) { o.QPI, o.QPP = 63, 63 }},
		{"threshold", video(64, 64, 4, 0), func(o *EncoderOptions) { o.Threshold = 30 }},
		{"nothing coded", video(64, 64, 4, 0), func(o *EncoderOptions) { o.Threshold = 64 }},
		{"low delay", video(64, 64, 5, 0), func(o *EncoderOptions) { o.LowDelay = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := testOptions()
			c.options(&o)
			format := formatOf(c.frames)
			stream, pictures, infos := encode(t, o, c.frames, format)
			for _, b := range inference.Backends() {
				for _, threads := range []int{1, 3} {
					if testing.Short() && (threads == 1 || b.Kernels() != fastest().Kernels()) {
						continue
					}
					do := testDecoderOptions()
					do.Backend, do.Threads = b, threads
					got, errs := decodeAll(bytes.NewReader(stream), do)
					if len(errs) > 0 || len(got) != len(c.frames) {
						t.Fatalf("%s, %d threads: %d frames, %v", b.Kernels(), threads, len(got), errs)
					}
					for i := range got {
						if !samePlanes(&got[i].picture, &pictures[i]) {
							t.Fatalf("%s, %d threads: frame %d differs", b.Kernels(), threads, i)
						}
						in, out := infos[i], got[i].info
						if got[i].pts != c.frames[i].PTS || out.Type != in.Type || out.QP != in.QP || out.Hash != in.Hash || out.K != in.K {
							t.Errorf("frame %d: encoder says %+v, decoder %+v", i, in, out)
						}
					}
				}
				o.Backend, o.Threads = b, 2
				again, _, _ := encode(t, o, c.frames, format)
				if !bytes.Equal(again, stream) {
					t.Errorf("%s, 2 threads: another stream", b.Kernels())
				}
			}
		})
	}
}

// However many frames are in flight, the stream and what the encoder says of its frames are the same; a slow receiver
// changes nothing, and Close writes what is left.
func TestInFlight(t *testing.T) {
	frames := video(64, 48, 20, 5)
	o := testOptions()
	o.IntraPeriod, o.SceneCut = 7, true
	want, pictures, infos := encode(t, o, frames, formatOf(frames))
	for _, n := range []int{1, 2, 3, inference.MaxInFlight} {
		var out bytes.Buffer
		o.InFlight = n
		e, err := NewEncoder(&out, formatOf(frames), o)
		if err != nil {
			t.Fatal(err)
		}
		received := 0
		receive := func() {
			info, err := e.Receive(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if !samePlanes(info.Decoded.Clone(), &pictures[received]) {
				t.Errorf("%d in flight: frame %d has another picture", n, received)
			}
			if info.Decoded = nil; info != infos[received] {
				t.Errorf("%d in flight: frame %d: %+v, want %+v", n, received, info, infos[received])
			}
			received++
		}
		for _, f := range frames {
			f = &yuv.Frame{Planes: *f.Planes.Clone(), PTS: f.PTS, Duration: f.Duration}
			if err := e.Submit(context.Background(), f); err != nil {
				t.Fatal(err)
			}
			clear(f.Y) // the encoder has its copy
			if now, most := e.InFlight(); now < most {
				continue
			}
			if err := e.Submit(context.Background(), f); err == nil {
				t.Fatalf("%d in flight: one more is taken", n)
			}
			if _, err := e.Write(context.Background(), f); err == nil {
				t.Fatalf("%d in flight: Write takes one more", n)
			}
			receive()
		}
		if received != len(frames)-n+1 {
			t.Errorf("%d in flight: %d received", n, received)
		}
		if _, err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Errorf("another stream with %d frames in flight", n)
		}
	}
	o.InFlight = inference.MaxInFlight + 1
	if _, err := NewEncoder(io.Discard, formatOf(frames), o); err == nil {
		t.Error("more frames in flight than may be")
	}
}

// Frame types, QPs and resets follow docs/FORMAT.md §5 and the trained pattern.
func TestPlan(t *testing.T) {
	o := DefaultOptions()
	o.IntraPeriod, o.ResetInterval, o.QPI, o.QPP = 20, 8, 30, 10
	p := planner{o: &o, shift: qpPatterns[1]}
	var got string
	for n := range 24 {
		if n == 13 && !p.mayCut() || n == 23 && p.mayCut() {
			t.Error("mayCut is wrong")
		}
		f := p.next(n == 3)
		got += fmt.Sprintf("%v%d:%d ", f.typ, f.k, f.qp)
	}
	const want = "intra0:30 reset1:10 inter2:0 " +
		"intra0:30 reset1:10 inter2:0 inter3:2 inter4:0 inter5:6 inter6:0 inter7:2 inter8:0 reset9:10 inter10:0 inter11:2 " +
		"inter12:0 inter13:6 inter14:0 inter15:2 inter16:0 reset17:10 inter18:0 inter19:2 intra0:30 "
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Irregular times come back as they were.
func TestTimes(t *testing.T) {
	frames := video(16, 16, 8, 0)
	for i, pts := range []int64{-5, 0, 33, 34, 1000, 90000, 90001, 1 << 40} {
		frames[i].PTS = pts
	}
	format := formatOf(frames)
	for _, rate := range []yuv.Rational{{Num: 0, Den: 1}, {Num: 30000, Den: 1001}} {
		format.TimeBase, format.FrameRate = yuv.Rational{Num: 1, Den: 1000}, rate
		stream, _, _ := encode(t, testOptions(), frames, format)
		got, errs := decodeAll(bytes.NewReader(stream), testDecoderOptions())
		if len(errs) > 0 || len(got) != len(frames) {
			t.Fatalf("%d frames, %v", len(got), errs)
		}
		for i := range got {
			if got[i].pts != frames[i].PTS {
				t.Errorf("rate %v: frame %d has time %d, want %d", rate, i, got[i].pts, frames[i].PTS)
			}
		}
		info, err := Scan(bytes.NewReader(stream), int64(len(stream)))
		if err != nil || info.Footer.Duration != 1<<40+5+1 {
			t.Errorf("footer %+v, %v", info.Footer, err)
		}
	}
}

// manyTimes are options for tests that decode a tiny stream many times.
func manyTimes() EncoderOptions {
	o := testOptions()
	o.Model, o.Backend = smallestModel(), fastest()
	o.IntraPeriod = 2
	return o
}

func fastest() inference.Backend {
	all := inference.Backends()
	return all[len(all)-1]
}

// stride thins tests that go through every byte of a stream where time is short.
func stride() int {
	if testing.Short() {
		return 10
	}
	return 1
}

// A whole decode of a cut stream gives the frames that are there.
func TestDecodeCut(t *testing.T) {
	frames := video(16, 16, 5, 0)
	o := manyTimes()
	stream, pictures, _ := encode(t, o, frames, formatOf(frames))
	for cut := 0; cut < len(stream); cut += stride() {
		got, errs := decodeAll(bytes.NewReader(stream[:cut]), decoderOptionsOf(o))
		if len(errs) != 1 || !errors.Is(errs[0], ErrTruncated) {
			t.Fatalf("cut at %d: %v", cut, errs)
		}
		for i := range got {
			if !samePlanes(&got[i].picture, &pictures[i]) {
				t.Fatalf("cut at %d: frame %d differs", cut, i)
			}
		}
		if cut > len(stream)-4 && len(got) != len(frames) {
			t.Errorf("%d frames of a stream that lacks its last byte", len(got))
		}
	}
}

// One wrong byte: an error of the right class, the other GOP whole, and every picture returned right.
func TestDecodeFlips(t *testing.T) {
	frames := video(16, 16, 4, 0)
	o := manyTimes()
	stream, pictures, _ := encode(t, o, frames, formatOf(frames))
	header := int(stream[5])
	for at := range stream {
		if at%stride() != 0 {
			continue
		}
		x := []byte{1, 0x80, 0xff}[at%3]
		bad := bytes.Clone(stream)
		bad[at] ^= x
		got, errs := decodeAll(bytes.NewReader(bad), decoderOptionsOf(o))
		var corrupt *CorruptError
		switch {
		case len(errs) == 0:
			t.Fatalf("byte %d ^ %02x: no error", at, x)
		case errors.As(errs[0], &corrupt):
		case at < header && (errors.Is(errs[0], ErrUnsupported) || errors.Is(errs[0], ErrTruncated)):
		default:
			t.Fatalf("byte %d ^ %02x: %v", at, x, errs)
		}
		if at >= header && len(got) < 2 {
			t.Fatalf("byte %d ^ %02x: %d frames, %v", at, x, len(got), errs)
		}
		for i := range got {
			if !samePlanes(&got[i].picture, &pictures[got[i].info.Number]) {
				t.Fatalf("byte %d ^ %02x: frame %d differs", at, x, got[i].info.Number)
			}
		}
	}
}

// Records that are whole but wrong, behind right CRCs.
func TestPayloadCorrupt(t *testing.T) {
	frames := video(16, 16, 4, 0)
	o := manyTimes()
	stream, _, _ := encode(t, o, frames, formatOf(frames))
	info, err := Scan(bytes.NewReader(stream), int64(len(stream)))
	if err != nil {
		t.Fatal(err)
	}
	first := info.Records[0]
	header := int(stream[5])
	for i := range first.PayloadBytes {
		bad := bytes.Clone(stream)
		bad[int(first.Offset)+first.Bytes-1-i] ^= 0x55
		bad = append(bad[:header:header], repair(bad[header:])...)
		got, errs := decodeAll(bytes.NewReader(bad), decoderOptionsOf(o))
		var corrupt *CorruptError
		var hash *HashError
		if len(errs) != 1 || !errors.As(errs[0], &hash) && (!errors.As(errs[0], &corrupt) || corrupt.Field != "payload") {
			t.Fatalf("byte %d: %v", i, errs)
		}
		// The hash does not cover what padding adds, so the first frame may pass and the second show the damage.
		if n := len(got); n < 2 || n > 3 || got[n-2].info.Number != 2 || got[n-1].info.Number != 3 {
			t.Fatalf("byte %d: %d frames, %v", i, len(got), errs)
		}
	}
}

func TestHashMismatch(t *testing.T) {
	frames := video(16, 16, 2, 0)
	o := testOptions()
	o.LowDelay = true
	stream, _, _ := encode(t, o, frames, formatOf(frames))
	info, _ := Scan(bytes.NewReader(stream), int64(len(stream)))
	r := info.Records[1]
	header := int(stream[5])
	bad := bytes.Clone(stream)
	bad[int(r.Offset)+r.Bytes-r.PayloadBytes-1] ^= 0x55 // the top byte of hash_high
	bad = append(bad[:header:header], repair(bad[header:])...)
	_, errs := decodeAll(bytes.NewReader(bad), testDecoderOptions())
	var hash *HashError
	if len(errs) != 1 || !errors.As(errs[0], &hash) || hash.Frame != 1 || hash.Bits != 32 || hash.Backend != "cpu/generic" || hash.Got^hash.Want != 0x55<<24 {
		t.Errorf("got %v", errs)
	}
	do := testDecoderOptions()
	do.NoVerify = true
	if got, errs := decodeAll(bytes.NewReader(bad), do); len(errs) > 0 || len(got) != 2 {
		t.Errorf("unverified: %d frames, %v", len(got), errs)
	}
}

func TestModelMismatch(t *testing.T) {
	frames := video(16, 16, 1, 0)
	stream, _, _ := encode(t, testOptions(), frames, formatOf(frames))
	other := completeModel(inferencetest.TinyModel(2))
	absent := errors.New("no such file")
	for name, models := range map[string]func([32]byte) (*inference.Model, error){
		"other":  onlyModel(other),
		"absent": func([32]byte) (*inference.Model, error) { return nil, absent },
		"nil":    func([32]byte) (*inference.Model, error) { return nil, nil },
		"none":   nil,
	} {
		o := testDecoderOptions()
		o.Models = models
		_, err := NewDecoder(bytes.NewReader(stream), o)
		if !errors.Is(err, ErrModelMismatch) || !bytes.Contains([]byte(err.Error()), fmt.Appendf(nil, "%x", testModel().ID)) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "other" && !bytes.Contains([]byte(err.Error()), fmt.Appendf(nil, "%x", other.ID)) {
			t.Errorf("%s: %v does not name the model at hand", name, err)
		}
		if name == "absent" && !errors.Is(err, absent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := testDecoderOptions()
	o.MaxPixels = 64*64 - 1
	if _, err := NewDecoder(bytes.NewReader(stream), o); !errors.Is(err, ErrUnsupported) {
		t.Errorf("too many pixels: %v", err)
	}
}

func TestSeek(t *testing.T) {
	frames := video(16, 16, 11, 0)
	o := testOptions()
	o.IntraPeriod = 4
	stream, pictures, _ := encode(t, o, frames, formatOf(frames))
	r := bytes.NewReader(append([]byte("junk"), stream...))
	r.Seek(4, io.SeekStart)
	d, err := NewDecoder(r, testDecoderOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, c := range []struct{ pts, first int64 }{{9, 8}, {0, 0}, {-7, 0}, {4, 4}, {7, 4}, {1000, 8}} {
		if err := d.SeekTo(c.pts); err != nil {
			t.Fatal(err)
		}
		for n := c.first; ; n++ {
			f, info, err := d.Next(context.Background())
			if err == io.EOF && n == 11 {
				break
			}
			if err != nil || info.Number != n || !samePlanes(f.Planes.Clone(), &pictures[n]) {
				t.Fatalf("seek to %d: frame %d, want %d, %v", c.pts, info.Number, n, err)
			}
			if c.pts == 4 {
				break // leave in the middle
			}
		}
	}
	pipe, err := NewDecoder(slowReader{bytes.NewReader(stream)}, testDecoderOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if err := pipe.SeekTo(4); err != ErrNoIndex {
		t.Errorf("seek in a pipe: %v", err)
	}
	cut, err := NewDecoder(bytes.NewReader(stream[:len(stream)-3]), testDecoderOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer cut.Close()
	if err := cut.SeekTo(4); err != ErrNoIndex {
		t.Errorf("seek in a cut stream: %v", err)
	}
	if _, info, err := cut.Next(context.Background()); err != nil || info.Number != 0 {
		t.Errorf("after a failed seek: frame %d, %v", info.Number, err)
	}
}

func TestSettings(t *testing.T) {
	frames := video(16, 16, 1, 0)
	settings := map[string]bool{}
	for name, change := range map[string]func(*EncoderOptions){
		"default":  func(*EncoderOptions) {},
		"qp-i":     func(o *EncoderOptions) { o.QPI = 3 },
		"qp-p":     func(o *EncoderOptions) { o.QPP = 3 },
		"skip":     func(o *EncoderOptions) { o.Threshold = 33 },
		"period":   func(o *EncoderOptions) { o.IntraPeriod = 0 },
		"reset":    func(o *EncoderOptions) { o.ResetInterval = 0 },
		"reach":    func(o *EncoderOptions) { o.Reach = 64 },
		"cut":      func(o *EncoderOptions) { o.SceneCut = false },
		"lowdelay": func(o *EncoderOptions) { o.LowDelay = true },
		"extra":    func(o *EncoderOptions) { o.Extra = "seek=10s" },
		"several":  func(o *EncoderOptions) { o.Extra, o.LowDelay, o.Reach, o.QPP = "seek=10s", true, 511, 0 },
	} {
		o := testOptions()
		o.Reach, o.SceneCut = DefaultOptions().Reach, true
		change(&o)
		stream, _, _ := encode(t, o, frames, formatOf(frames))
		for _, read := range []func(io.ReaderAt, int64) (*Info, error){Peek, Scan} {
			info, err := read(bytes.NewReader(stream), int64(len(stream)))
			if err != nil || !info.Complete || info.Settings() != o.Settings() {
				t.Errorf("%s: %q from the stream, %q from the options, %v", name, info.Settings(), o.Settings(), err)
			}
		}
		if settings[o.Settings()] {
			t.Errorf("%s: %q is another case's text too", name, o.Settings())
		}
		settings[o.Settings()] = true
	}
}

func TestEncoderRefuses(t *testing.T) {
	frames := video(16, 16, 2, 0)
	for name, change := range map[string]func(*EncoderOptions, *yuv.Format){
		"QPI":        func(o *EncoderOptions, f *yuv.Format) { o.QPI = 64 },
		"QPP":        func(o *EncoderOptions, f *yuv.Format) { o.QPP = -1 },
		"period":     func(o *EncoderOptions, f *yuv.Format) { o.IntraPeriod = -1 },
		"threshold":  func(o *EncoderOptions, f *yuv.Format) { o.Threshold = 65 },
		"reach":      func(o *EncoderOptions, f *yuv.Format) { o.Reach = 512 },
		"model":      func(o *EncoderOptions, f *yuv.Format) { o.Model = nil },
		"backend":    func(o *EncoderOptions, f *yuv.Format) { o.Backend = nil },
		"width":      func(o *EncoderOptions, f *yuv.Format) { f.W = 0 },
		"size":       func(o *EncoderOptions, f *yuv.Format) { f.W, f.H = 16384, 16384 },
		"time base":  func(o *EncoderOptions, f *yuv.Format) { f.TimeBase.Den = 0 },
		"frame rate": func(o *EncoderOptions, f *yuv.Format) { f.FrameRate.Den = -1 },
		"rotation":   func(o *EncoderOptions, f *yuv.Format) { f.Rotation = 45 },
	} {
		o, f := testOptions(), formatOf(frames)
		change(&o, &f)
		if _, err := NewEncoder(io.Discard, f, o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	e, err := NewEncoder(io.Discard, formatOf(frames), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := e.Write(ctx, &yuv.Frame{Planes: *yuv.New(17, 16)}); err == nil {
		t.Error("a frame of another size is taken")
	}
	if err := e.Metadata("", "x"); err == nil {
		t.Error("an empty key is taken")
	}
	if err := e.Metadata("k", string(make([]byte, maxMetadata))); err == nil {
		t.Error("too much metadata is taken")
	}
	cancel()
	if _, err := e.Write(ctx, frames[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := e.Write(context.Background(), frames[0]); err != nil {
		t.Errorf("after a cancelled Write: %v", err)
	}
	if _, err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := e.Write(context.Background(), frames[1]); err == nil {
		t.Error("a frame is taken after Close")
	}
}

func TestWriterFails(t *testing.T) {
	frames := video(16, 16, 2, 0)
	full := errors.New("disk full")
	if _, err := NewEncoder(limited{new(int), full}, formatOf(frames), testOptions()); !errors.Is(err, full) {
		t.Errorf("header: %v", err)
	}
	room := 70
	o := testOptions()
	o.LowDelay = true
	e, err := NewEncoder(limited{&room, full}, formatOf(frames), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Write(context.Background(), frames[0]); !errors.Is(err, full) {
		t.Errorf("frame: %v", err)
	}
	if _, err := e.Close(); !errors.Is(err, full) {
		t.Errorf("close: %v", err)
	}
}

// limited takes so many bytes and then fails.
type limited struct {
	room *int
	err  error
}

func (l limited) Write(b []byte) (int, error) {
	if len(b) > *l.room {
		return 0, l.err
	}
	*l.room -= len(b)
	return len(b), nil
}

// A video without frames is a whole stream.
func TestNoFrames(t *testing.T) {
	var out bytes.Buffer
	e, err := NewEncoder(&out, plainHeader().Format, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	e.Metadata("conversion", "none")
	if _, err := e.Close(); err != nil {
		t.Fatal(err)
	}
	got, errs := decodeAll(bytes.NewReader(out.Bytes()), testDecoderOptions())
	if len(got) != 0 || len(errs) != 0 {
		t.Errorf("%d frames, %v", len(got), errs)
	}
}

// The test video's second scene is found, and nothing else is taken for one.
func TestSceneCut(t *testing.T) {
	o := testOptions()
	o.SceneCut = true
	frames := video(128, 128, 8, 5)
	_, _, infos := encode(t, o, frames, formatOf(frames))
	for i, info := range infos {
		if (info.Type == Intra) != (i == 0 || i == 5) {
			t.Errorf("frame %d is %v", i, info.Type)
		}
	}
}
