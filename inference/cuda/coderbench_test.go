//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/nvcodec/nvcodec/convert/tables"
	"github.com/nvcodec/nvcodec/entropy"
	"github.com/nvcodec/nvcodec/inference"
)

// How many symbols of an inter frame have each table: base model at QP 42, the mean of two clips tiled to 1920x1088.
// 40 % of the y symbols are below the threshold of 2 and not coded; the others take 0.65 bits each.
var (
	usualY = []int{316881, 0, 15107, 13018, 12782, 13465, 15560, 17269, 19300, 24237, 34243, 46512, 52229, 47490, 35370, 24601, 18664, 15423, 12625,
		10696, 8738, 6942, 5233, 4107, 3216, 2574, 1975, 1494, 1036, 751, 509, 366, 237, 184, 129, 84, 69, 64, 42, 39, 25, 25, 9, 6, 3, 3, 2}
	usualZ = []int{26010, 1530, 1020, 1020, 0, 0, 510, 510, 510, 0, 0, 0, 1020, 0, 0, 0, 0, 0, 0, 0, 510}
)

// usualCase makes a frame of a size with those tables, and symbols as the tables expect them.
func usualCase(size inference.Size) *coderCase {
	r := rand.New(rand.NewPCG(42, 1))
	draw := func(counts []int) func() uint8 {
		var all []uint8
		for t, n := range counts {
			for range (n + 15) / 30 {
				all = append(all, uint8(t))
			}
		}
		return func() uint8 { return all[r.IntN(len(all))] }
	}
	y, z := draw(usualY), draw(usualZ)
	c := &coderCase{hash: r.Uint32(), limit: 127}
	c.Threshold = 2
	section := func(n int, skip bool) entropy.Section {
		s := entropy.Section{Symbols: make([]int16, n), Tables: make([]uint8, n), Skip: skip}
		for i := range n {
			if skip {
				if s.Tables[i] = y(); int(s.Tables[i]) >= c.Threshold {
					s.Symbols[i] = int16(math.Floor(r.NormFloat64()*tables.Sigma(int(s.Tables[i])) + 0.5))
				}
				continue
			}
			s.Tables[i] = entropy.LogisticTables + z()
			u := r.Float64()
			s.Symbols[i] = int16(math.Floor(max(-127, min(127, math.Log(u/(1-u))*tables.ZScale(int(s.Tables[i]&63)))) + 0.5))
		}
		return s
	}
	positions := size.W / 16 * (size.H / 16)
	c.Levels = [][]entropy.Section{{section(positions*4, false)}, {section(positions*48, true), section(positions*48, true)}}
	c.Tail = uint16(c.hash)
	return c
}

// A sequence of launches counts as one.
type sequence []launch

func (s sequence) run() error {
	for _, l := range s {
		if err := l.run(); err != nil {
			return err
		}
	}
	return nil
}

// A codedWork is one of the things that are timed.
type codedWork struct {
	what  string
	calls []call
}

// coderWork puts a frame of a size on a machine and returns what the coder does with it. done checks the last result.
func (g *coderRig) coderWork(size inference.Size) (work []codedWork, about string, done func() error) {
	c := usualCase(size)
	payload, lanes := g.encode(c)
	coded := int(structure[encoderResult](g.locked).Coded)
	scratch, n := encodeLayout(g.sections)
	result := g.host(n)
	at, hash := g.alloc(scratch), upload(&g.rig, []uint32{c.hash})
	frame := g.parameters(frameParameters{Threshold: int32(c.Threshold), Result: addressOf(result)})
	work = append(work, codedWork{"encode", append(gatherCalls(g.tables, g.sections, frame, at), encodeCalls(g.tables, g.sections, hash, at)...)})

	reader := newPayloadReader(g.tables)
	g.must(reader.Start(payload, lanes))
	symbols, _ := countSymbols(g.sections)
	scratch, n, _ = decodeLayout(g.sections)
	f := frameParameters{Threshold: int32(c.Threshold)}
	decoded, input := g.host(n), g.host(int64(reader.take(symbols)))
	reader.stage(&f, input, symbols)
	f.Input, f.Result = addressOf(input), addressOf(decoded)
	frame, at = g.parameters(f), g.alloc(scratch)
	work = append(work, codedWork{"decode", append(decodeCalls(g.tables, g.sections, 0, frame, at), decodeCalls(g.tables, g.sections, 1, frame, at)...)})

	p, err := newPictureHash(g.m, size.W-1, size.H-7, size.W, size.H)
	g.must(err)
	g.held = append(g.held, p.powers)
	work = append(work, codedWork{"hash", p.calls(hash, g.alloc(int64(size.W*size.H*3/2)), 0)})

	about = fmt.Sprintf("%dx%d: %d symbols coded, %d bytes, %d lanes, %d rounds", size.W, size.H, coded, len(payload), lanes, (coded+lanes-1)/lanes)
	return work, about, func() error {
		_, err := structure[decoderResult](decoded).check(g.sections)
		return err
	}
}

// TestCoderProfile prints, with NVCODEC_PROFILE set, how long gathering, coding and decoding a frame's symbols and
// hashing its picture take on a device, kernel by kernel: what each adds to those before it.
func TestCoderProfile(t *testing.T) {
	if os.Getenv("NVCODEC_PROFILE") == "" {
		t.Skip("NVCODEC_PROFILE is not set")
	}
	host := modelTables(t, 1)
	eachDevice(t, func(t *testing.T, b *backend) {
		opened, err := b.open()
		if err != nil {
			t.Fatal(err)
		}
		m := &bench{machine: opened}
		for _, size := range benchSizes() {
			g := newCoderRig(t, m, host)
			work, about, done := g.coderWork(size)
			t.Log(about)
			for _, w := range work {
				var all sequence
				before := 0.0
				for _, c := range w.calls {
					l, err := m.prepare(c)
					g.must(err)
					all = append(all, l)
					now := micros(timed(t, m, all))
					t.Logf("%9.1f us  %s", now-before, c.kernel)
					before = now
				}
				t.Logf("%9.1f us  %s in all", before, w.what)
			}
			g.must(done())
			g.free()
		}
		if err := m.finish(); err != nil {
			t.Error(err)
		}
	})
}

// BenchmarkCoder is the coder alone, a frame at a time: from symbols and tables on the device to the result in the
// host's memory and back, and the hash of a picture.
func BenchmarkCoder(b *testing.B) {
	n, err := count()
	if err != nil {
		b.Skip(err)
	}
	host := modelTables(b, 1)
	for d := range n {
		back, err := New(d, "auto")
		if err != nil {
			b.Fatal(err)
		}
		for _, size := range benchSizes() {
			opened, err := back.open()
			if err != nil {
				b.Fatal(err)
			}
			m := &bench{machine: opened}
			g := newCoderRig(b, m, host)
			work, _, done := g.coderWork(size)
			for _, w := range work {
				g.launch(w.calls) // what is checked has run, whichever of these is timed
			}
			g.must(m.sync())
			g.must(done())
			for _, w := range work {
				var all sequence
				for _, c := range w.calls {
					l, err := m.prepare(c)
					g.must(err)
					all = append(all, l)
				}
				b.Run(fmt.Sprintf("what=%s/size=%dx%d/impl=cuda:%d", w.what, size.W, size.H, d), func(b *testing.B) {
					captured, err := m.capture(all.run)
					if err != nil {
						b.Fatal(err)
					}
					defer captured.close()
					for b.Loop() {
						if err := captured.run(); err != nil {
							b.Fatal(err)
						}
						if err := m.sync(); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N), "us/frame")
				})
			}
			g.must(done())
			g.free()
			if err := m.finish(); err != nil {
				b.Error(err)
			}
		}
		if err := back.Close(); err != nil {
			b.Error(err)
		}
	}
}
