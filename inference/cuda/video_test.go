//go:build cuda

package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/nvcodec/nvcodec/codec"
	"github.com/nvcodec/nvcodec/convert/tables"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
	"github.com/nvcodec/nvcodec/yuv"
)

// codingModel is a small network of random weights, with the tables that a codec needs besides.
var codingModel = sync.OnceValue(func() *inference.Model {
	m := inferencetest.TinyModel(21)
	add := func(name, typ string, shape []int, data []int64) {
		t, err := inference.NewTensor(name, typ, shape, data)
		if err != nil {
			panic(err)
		}
		m.Tensors[name] = t
	}
	add("qp.shift", "U8", []int{8}, []int64{0, 14, 8, 14, 4, 14, 8, 14})
	for _, t := range tables.All() {
		add(t.Name, t.Type, t.Shape, t.Data)
	}
	if _, err := inference.Marshal(m); err != nil { // sets the identity
		panic(err)
	}
	return m
})

// video makes frames of a picture that moves, with noise in some of them, and another scene from frame cut on.
func video(w, h, n, cut int) []*yuv.Frame {
	rng := rand.New(rand.NewPCG(uint64(w), uint64(h)))
	var frames []*yuv.Frame
	for t := range n {
		f := &yuv.Frame{Planes: *yuv.New(w, h), PTS: int64(t), Duration: 1}
		seed, noise := 3*t, 1+t%3*7
		if t >= cut {
			seed += 1000
		}
		paint := func(p []byte, stride, scale int) {
			for i := range p {
				u, v := i%stride*scale+seed, i/stride*scale+seed/2
				p[i] = byte(60+(u>>4&7)*((v>>4+seed/1000)&7)*3+(u+v)&15) + byte(rng.IntN(noise))
			}
		}
		paint(f.Y, f.StrideY, 1)
		paint(f.U, f.StrideC, 2)
		paint(f.V, f.StrideC, 2)
		frames = append(frames, f)
	}
	return frames
}

func codingOptions(b inference.Backend, inFlight int) codec.EncoderOptions {
	o := codec.DefaultOptions()
	o.Model, o.Backend, o.Threads, o.InFlight = codingModel(), b, 1, inFlight
	o.Reach, o.IntraPeriod, o.ResetInterval = 24, 7, 3
	return o
}

func formatOf(frames []*yuv.Frame) yuv.Format {
	return yuv.Format{W: frames[0].W, H: frames[0].H, TimeBase: yuv.Rational{Num: 1, Den: 25}, FrameRate: yuv.Rational{Num: 25, Den: 1},
		SAR: yuv.Rational{Num: 0, Den: 1}, Colour: yuv.Colour{Primaries: 2, Transfer: 2, Matrix: 2}}
}

// A reel is what coding some frames gave.
type reel struct {
	stream   []byte
	pictures []*yuv.Planes
	hashes   []uint32
}

// encodeReel has as many frames in flight as may be; the receiver is slow from time to time.
func encodeReel(frames []*yuv.Frame, o codec.EncoderOptions) (r reel, err error) {
	var out bytes.Buffer
	e, err := codec.NewEncoder(&out, formatOf(frames), o)
	if err != nil {
		return r, err
	}
	defer e.Abort()
	receive := func() error {
		if len(r.hashes)%5 == 3 {
			time.Sleep(time.Millisecond)
		}
		info, err := e.Receive(context.Background())
		if err != nil {
			return err
		}
		if info.Decoded != nil {
			r.pictures = append(r.pictures, info.Decoded.Clone())
		}
		r.hashes = append(r.hashes, info.Hash)
		return nil
	}
	for _, f := range frames {
		if now, most := e.InFlight(); now == most {
			if err := receive(); err != nil {
				return r, err
			}
		}
		if err := e.Submit(context.Background(), f); err != nil {
			return r, err
		}
	}
	for len(r.hashes) < len(frames) {
		if err := receive(); err != nil {
			return r, err
		}
	}
	_, err = e.Close()
	r.stream = out.Bytes()
	return r, err
}

// decodeReel is slow from time to time too; damage that the stream has is listed, not returned.
func decodeReel(stream []byte, b inference.Backend, inFlight int) (r reel, damage []string, err error) {
	d, err := codec.NewDecoder(bytes.NewReader(stream), codec.DecoderOptions{
		Models: func([32]byte) (*inference.Model, error) { return codingModel(), nil }, Backend: b, Threads: 1, InFlight: inFlight,
	})
	if err != nil {
		return r, nil, err
	}
	defer d.Close()
	for {
		f, info, err := d.Next(context.Background())
		var bad *codec.CorruptError
		switch {
		case err == io.EOF:
			return r, damage, nil
		case errors.As(err, &bad):
			damage = append(damage, fmt.Sprintf("frame %d: %s", info.Number, bad.Field))
			continue
		case err != nil:
			return r, damage, err
		}
		if len(r.hashes)%5 == 2 {
			time.Sleep(time.Millisecond)
		}
		r.pictures = append(r.pictures, f.Planes.Clone())
		r.hashes = append(r.hashes, info.Hash)
	}
}

func (r *reel) same(want *reel) error {
	for i := range want.hashes {
		switch {
		case i >= len(r.hashes):
			return fmt.Errorf("%d frames, want %d", len(r.hashes), len(want.hashes))
		case r.hashes[i] != want.hashes[i]:
			return fmt.Errorf("frame %d has hash %08x, want %08x", i, r.hashes[i], want.hashes[i])
		case i < len(r.pictures) && codec.PictureHash(r.pictures[i]) != want.hashes[i]:
			return fmt.Errorf("frame %d: its picture is not what was hashed", i)
		}
	}
	if r.stream != nil && !bytes.Equal(r.stream, want.stream) {
		return errors.New("another stream")
	}
	return nil
}

// eachOrder runs a test with several orders of an emulated device's streams, and everything poisoned that may be; on a
// device with and without the poison. Of the emulated families one shows what all orders do.
func eachOrder(t *testing.T, sms []int, test func(t *testing.T, b *backend)) {
	for _, sm := range sms {
		for i, o := range []order{late, early, eager, random} {
			if sm != 80 && (o != random || testing.Short()) || o == late && testing.Short() {
				continue
			}
			t.Run(fmt.Sprintf("impl=emulated/%s/order=%d", familyName(sm), i), func(t *testing.T) {
				d := newEmulatedDevice()
				d.order, d.pause = o, 2*time.Millisecond
				test(t, &backend{name: emulation, sm: sm, capture: o != late, poison: true, open: func() (machine, error) { return newEmulated(d, sm), nil }})
				if n := len(d.memory) + len(d.pinned) + len(d.lanes); n > 0 && !t.Failed() {
					t.Errorf("%d blocks of memory and streams are left", n)
				}
			})
		}
	}
	eachDevice(t, func(t *testing.T, b *backend) {
		for _, b.poison = range []bool{false, true} {
			before := Live()
			test(t, b)
			if n := Live(); n != before {
				t.Errorf("%d of the driver's things are held, want %d as before", n, before)
			}
		}
	})
}

// Streams, pictures and hashes are those of the generic kernels with 1 and with 16 frames in flight, whatever the size,
// both ways.
func TestCoders(t *testing.T) {
	for _, c := range []struct {
		w, h, n, cut int
		sceneCut     bool // without, the host waits for nothing before it has submitted all it may
	}{{64, 64, 9, 4, true}, {64, 128, 7, 99, false}, {130, 67, 4, 99, false}, {1, 1, 4, 99, true}} {
		t.Run(fmt.Sprintf("%dx%d", c.w, c.h), func(t *testing.T) {
			frames := video(c.w, c.h, c.n, c.cut)
			options := func(b inference.Backend, inFlight int) codec.EncoderOptions {
				o := codingOptions(b, inFlight)
				o.SceneCut = c.sceneCut
				return o
			}
			want, err := encodeReel(frames, options(generic(t), 1))
			if err != nil {
				t.Fatal(err)
			}
			eachOrder(t, families, func(t *testing.T, b *backend) {
				several := []int{1, inference.MaxInFlight}
				if b.name == emulation && b.capture { // one frame at a time leaves other orders nothing to show
					several = several[1:]
				}
				for _, inFlight := range several {
					got, err := encodeReel(frames, options(b, inFlight))
					if err == nil {
						err = got.same(&want)
					}
					if err != nil {
						t.Errorf("encoding, %d in flight: %v", inFlight, err)
					}
					got, damage, err := decodeReel(want.stream, b, inFlight)
					if err == nil && len(damage) > 0 {
						err = errors.New(damage[0])
					}
					if err == nil {
						err = got.same(&want)
					}
					if err != nil {
						t.Errorf("decoding, %d in flight: %v", inFlight, err)
					}
				}
			})
		})
	}
}

// A payload that is damaged is reported for its frame, whatever is in flight behind it, and the next GOP decodes.
func TestCodersDamage(t *testing.T) {
	frames := video(64, 64, 16, 99)
	device := newEmulatedDevice()
	emulation := &backend{name: emulation, sm: 80, open: func() (machine, error) { return newEmulated(device, 80), nil }}
	damaged, err := encodeReel(frames, codingOptions(corrupting{emulation, 9}, 4))
	if err != nil {
		t.Fatal(err)
	}
	want, damage, err := decodeReel(damaged.stream, generic(t), 1)
	if err != nil || len(damage) != 1 || len(want.hashes) != len(frames)-5 { // frame 9 and the rest of a GOP of 7
		t.Fatalf("%d frames, damage %v, %v", len(want.hashes), damage, err)
	}
	eachOrder(t, []int{80}, func(t *testing.T, b *backend) {
		for _, inFlight := range []int{1, 4, inference.MaxInFlight} {
			got, found, err := decodeReel(damaged.stream, b, inFlight)
			if err == nil {
				err = got.same(&want)
			}
			if err != nil || fmt.Sprint(found) != fmt.Sprint(damage) {
				t.Errorf("%d in flight: damage %v, want %v; %v", inFlight, found, damage, err)
			}
		}
	})
}

// In steady state a frame takes no memory, on the device or the host.
func TestCodersAllocateNothing(t *testing.T) {
	frames := video(64, 64, 6, 99)
	eachDevice(t, func(t *testing.T, b *backend) {
		o := &inference.CodingOptions{Model: codingModel(), W: 64, H: 64, InFlight: 3, Reach: 16, Pictures: true}
		enc, err := b.OpenEncoder(o)
		if err != nil {
			t.Fatal(err)
		}
		defer enc.Close()
		dec, err := b.OpenDecoder(o)
		if err != nil {
			t.Fatal(err)
		}
		defer dec.Close()
		graphs := [...]string{"intra", "reset", "inter"} // an odd number: each meets both parities
		var frame inference.Frame
		var payload inference.CodedFrame
		round := func() {
			for i, g := range graphs {
				if err := enc.Load(&frames[i].Planes); err != nil {
					t.Fatal(err)
				}
				if _, err := enc.Cut(); err != nil {
					t.Fatal(err)
				}
				frame = inference.Frame{Graph: g, QP: 42}
				if err := enc.Submit(&frame); err != nil {
					t.Fatal(err)
				}
			}
			for _, g := range graphs {
				c, err := enc.Receive()
				if err != nil {
					t.Fatal(err)
				}
				payload = inference.CodedFrame{Graph: g, QP: 42, Lanes: c.Lanes, Payload: c.Payload}
				if err := dec.Submit(&payload); err != nil {
					t.Fatal(err)
				}
			}
			for range graphs {
				if _, err := dec.Receive(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 4 {
			round()
		}
		before, measured := Live(), 20
		if testing.Short() {
			measured = 2
		}
		if n := testing.AllocsPerRun(measured, round); n > 0 {
			t.Errorf("%.1f allocations in %d frames", n, len(graphs))
		}
		if n := Live() - before; n != 0 {
			t.Errorf("%d things of the driver were taken in steady state", n)
		}
	})
}

// A coder's network works on the caller's stream: nothing is coded while that is blocked, and all is while another one
// is. Coders are opened before and closed after, since taking and giving back memory waits for the whole device.
func TestCodersStream(t *testing.T) {
	frames := video(64, 64, 5, 99)
	want, err := encodeReel(frames, codingOptions(generic(t), 1))
	if err != nil {
		t.Fatal(err)
	}
	eachBackend(t, func(t *testing.T, b *backend) {
		var streams [2]*Stream
		for i := range streams {
			if streams[i], err = b.NewStream(); err != nil {
				t.Fatal(err)
			}
		}
		for blocked, s := range streams {
			o := codingOptions(b, 4)
			e, err := b.OpenEncoderOn(streams[0], &inference.CodingOptions{Model: o.Model, W: 64, H: 64, InFlight: 4, Reach: o.Reach, Pictures: true})
			if err != nil {
				t.Fatal(err)
			}
			o.Backend = openedBefore{b, staysOpen{e}}
			got := make(chan error, 1)
			release := block(t, s)
			go func() {
				r, err := encodeReel(frames, o)
				if err == nil {
					err = r.same(&want)
				}
				got <- err
			}()
			if blocked == 0 {
				select {
				case err := <-got:
					t.Errorf("frames were coded while their stream was blocked: %v", err)
				case <-time.After(100 * time.Millisecond):
				}
				release()
			}
			select {
			case err := <-got:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Minute):
				t.Error("work waits for a stream that has nothing to do with it")
			}
			if blocked == 1 {
				release()
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
		for _, s := range streams {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// openedBefore is a backend whose encoder is there already.
type openedBefore struct {
	*backend
	e inference.FrameEncoder
}

func (b openedBefore) OpenEncoder(*inference.CodingOptions) (inference.FrameEncoder, error) {
	return b.e, nil
}

type staysOpen struct{ inference.FrameEncoder }

func (staysOpen) Close() error { return nil }

// Several coders of one device at a time, under one and under many processors.
func TestCodersConcurrently(t *testing.T) {
	frames := video(64, 64, 6, 3)
	want, err := encodeReel(frames, codingOptions(generic(t), 1))
	if err != nil {
		t.Fatal(err)
	}
	eachOrder(t, []int{80}, func(t *testing.T, b *backend) {
		for _, procs := range []int{1, runtime.NumCPU()} {
			before := runtime.GOMAXPROCS(procs)
			done := make(chan error)
			const coders = 3
			for range coders {
				go func() {
					got, err := encodeReel(frames, codingOptions(b, 4))
					if err == nil {
						err = got.same(&want)
					}
					if err == nil {
						got, _, err = decodeReel(want.stream, b, 4)
					}
					if err == nil {
						err = got.same(&want)
					}
					done <- err
				}()
			}
			for range coders {
				if err := <-done; err != nil {
					t.Errorf("GOMAXPROCS %d: %v", procs, err)
				}
			}
			runtime.GOMAXPROCS(before)
		}
	})
}

// CodingMemory says what a coder takes with the family of kernels that takes most, and an Open that fails, whichever
// allocation it is that fails, gives back all.
func TestCodingMemory(t *testing.T) {
	o := &inference.CodingOptions{Model: codingModel(), W: 100, H: 50, InFlight: 3, Reach: 16, Pictures: true}
	for _, encode := range []bool{false, true} {
		open := func(sm, fails int) (*emulatedDevice, *backend, io.Closer, error) {
			d := newEmulatedDevice()
			d.fails = fails
			b := &backend{name: emulation, sm: sm, open: func() (machine, error) { return newEmulated(d, sm), nil }}
			if encode {
				c, err := b.OpenEncoder(o)
				return d, b, c, err
			}
			c, err := b.OpenDecoder(o)
			return d, b, c, err
		}
		var device int64
		for _, sm := range families {
			d, _, c, err := open(sm, 0)
			if err != nil {
				t.Fatal(err)
			}
			if device = max(device, d.bytes()); len(d.pinned) != o.InFlight+1 {
				t.Errorf("%d slots for %d frames in flight", len(d.pinned), o.InFlight)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		want, _, shared, err := CodingMemory(o, encode)
		if err != nil || device != want+shared {
			t.Errorf("encode=%v: %d bytes of device memory; CodingMemory says %d and %d shared; %v", encode, device, want, shared, err)
		}
		for fails := 1; ; fails++ {
			d, b, c, err := open(80, fails)
			if err == nil {
				c.Close()
			}
			if n := len(d.memory) + len(d.pinned) + len(d.lanes) + len(b.models); n > 0 {
				t.Fatalf("encode=%v, allocation %d fails: %d things are left", encode, fails, n)
			}
			if err == nil {
				if fails < 10 {
					t.Errorf("only %d allocations", fails-1)
				}
				break
			}
		}
	}
	for _, m := range benchModels(t) {
		for _, encode := range []bool{false, true} {
			o := &inference.CodingOptions{Model: m, W: 1920, H: 1080, InFlight: 4, Reach: 128, Pictures: true}
			device, host, shared, err := CodingMemory(o, encode)
			t.Logf("%s at 1920x1080, encode=%v: %d MiB, weights %d MiB, page-locked %d MiB, %v", m.Name, encode, device>>20, shared>>20, host>>20, err)
		}
	}
}

// corrupting is a backend whose encoders spoil the payload of one frame.
type corrupting struct {
	inference.CodingBackend
	frame int
}

func (c corrupting) OpenEncoder(o *inference.CodingOptions) (inference.FrameEncoder, error) {
	e, err := c.CodingBackend.OpenEncoder(o)
	return &corruptingEncoder{e, c.frame}, err
}

type corruptingEncoder struct {
	inference.FrameEncoder
	left int
}

func (c *corruptingEncoder) Receive() (*inference.Coded, error) {
	got, err := c.FrameEncoder.Receive()
	if c.left--; err == nil && c.left == -1 {
		got.Payload[len(got.Payload)/2] ^= 0x55
	}
	return got, err
}

// What a frame has beside the decoding of symbols begins behind their list, and nothing else waits for more than it did.
func TestBehindLists(t *testing.T) {
	calls := behindLists([]call{
		{kernel: "z", stream: 1},
		{kernel: "coder_list", stream: 1},
		{kernel: "memory", after: 1},
		{kernel: "tables", after: 2},
		{kernel: "coder_list"}, {kernel: "coder_list"},
		{kernel: "coder_decode"},
		{kernel: "beside", stream: 1, after: 4},
		{kernel: "more", stream: 1},
		{kernel: "joined", after: 9},
	})
	var got []int
	for _, c := range calls {
		got = append(got, c.after)
	}
	if want := []int{0, 0, 2, 2, 0, 0, 0, 6, 0, 9}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("waits are %v, want %v", got, want)
	}
}
