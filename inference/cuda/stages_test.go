//go:build cuda

package cuda

import (
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nvcodec/nvcodec/inference"
)

// TestStages prints, with NVCODEC_PROFILE set, how long each stage of a coder of whole frames takes at 1920x1080: the
// device's alone, one graph after the other, and the host's calls with frames in flight.
func TestStages(t *testing.T) {
	if os.Getenv("NVCODEC_PROFILE") == "" {
		t.Skip("NVCODEC_PROFILE is not set")
	}
	w, h, count := 1920, 1080, 60
	if software {
		w, h, count = 64, 64, 6
	}
	frames := video(w, h, 8, 99)
	eachDevice(t, func(t *testing.T, b *backend) {
		for _, m := range benchModels(t) {
			if m.Tensors["entropy.size"] == nil {
				m = completed(m)
			}
			o := &inference.CodingOptions{Model: m, W: w, H: h, InFlight: inference.DeviceInFlight, Reach: 128}
			t.Logf("%s at %dx%d", m.Name, w, h)
			payloads := profileEncoder(t, b, o, count, func(n int) inference.Frame {
				f := inference.Frame{Graph: "inter", QP: 42, Threshold: 4}
				if n < 2 {
					f.Graph = [...]string{"intra", "reset"}[n]
				}
				return f
			}, func(e inference.FrameEncoder, n int) error { return e.Load(&frames[n%len(frames)].Planes) })
			profileDecoder(t, b, o, payloads)
		}
	})
}

// completed adds to a random network the tables that a codec needs besides.
func completed(m *inference.Model) *inference.Model {
	for name, tensor := range codingModel().Tensors {
		if m.Tensors[name] == nil {
			m.Tensors[name] = tensor
		}
	}
	return m
}

// A hostWatch adds up what calls take.
type hostWatch struct {
	names []string
	spent map[string]time.Duration
}

func (w *hostWatch) time(t *testing.T, name string, f func() error) {
	t.Helper()
	start := time.Now()
	if err := f(); err != nil {
		t.Fatal(err)
	}
	if w.spent == nil {
		w.spent = map[string]time.Duration{}
	}
	if _, ok := w.spent[name]; !ok {
		w.names = append(w.names, name)
	}
	w.spent[name] += time.Since(start)
}

func (w *hostWatch) print(t *testing.T, frames int) {
	for _, name := range w.names {
		t.Logf("%11.1f us  host, %s", micros(w.spent[name])/float64(frames), name)
	}
}

func printStage(t *testing.T, s *stage, name string, p *part) {
	t.Helper()
	t.Logf("%11.1f us  device, %s", micros(timed(t, s.m, &launched{p})), name)
}

// printBeside prints what a part takes while the network of frame after frame is computed.
func printBeside(t *testing.T, network *stage, frame *part, s *stage, name string, p *part) {
	t.Helper()
	repeats := 20
	if software {
		repeats = 1
	}
	many := func(m machine, p *part) captured {
		g, err := m.capture(func() error {
			for range repeats {
				if err := p.all(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	load, work := many(network.m, frame), many(s.m, p)
	defer load.close()
	defer work.close()
	for round := range 2 { // the first is to warm up
		for range 2 {
			if err := load.run(); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		if err := work.run(); err != nil {
			t.Fatal(err)
		}
		if err := s.m.sync(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); round == 1 {
			t.Logf("%11.1f us  device, %s", micros(took)/float64(repeats), name)
		}
		if err := network.m.sync(); err != nil {
			t.Fatal(err)
		}
	}
}

// launched runs a part's launches, for a graph that repeats them.
type launched struct{ p *part }

func (l *launched) run() error { return l.p.all() }

func profileEncoder(t *testing.T, b *backend, o *inference.CodingOptions, count int, frame func(n int) inference.Frame, load func(inference.FrameEncoder, int) error) []inference.CodedFrame {
	fe, err := b.OpenEncoder(o)
	if err != nil {
		t.Fatal(err)
	}
	defer fe.Close()
	var coded []inference.CodedFrame
	var sent []inference.Frame
	var w hostWatch
	receive := func() error {
		c, err := fe.Receive()
		if err != nil {
			return err
		}
		f := sent[len(coded)]
		coded = append(coded, inference.CodedFrame{Graph: f.Graph, QP: f.QP, Threshold: f.Threshold, Lanes: c.Lanes, Payload: append([]byte(nil), c.Payload...)})
		return nil
	}
	var start time.Time
	for n := range count {
		if n == count/3 { // both parities of every graph have been captured
			w, start = hostWatch{}, time.Now()
		}
		if n-len(coded) == o.InFlight {
			w.time(t, "Receive", receive)
		}
		w.time(t, "Load", func() error { return load(fe, n) })
		w.time(t, "Cut", func() error { _, err := fe.Cut(); return err })
		f := frame(n)
		sent = append(sent, f)
		w.time(t, "Submit", func() error { return fe.Submit(&f) })
	}
	for len(coded) < count {
		w.time(t, "Receive", receive)
	}
	rest := count - count/3
	t.Logf("%11.1f us  a frame encoded, %d bytes", micros(time.Since(start))/float64(rest), len(coded[count-1].Payload))
	w.print(t, rest)
	e := fe.(*encoder)
	if err := e.sync(); err != nil {
		t.Fatal(err)
	}
	g := e.graphs["inter"]
	printStage(t, e.prepare, "padding", e.pad[0])
	printStage(t, e.prepare, "costs of a scene cut", e.cut[0])
	printStage(t, e.search, "motion search", e.find[0])
	printStage(t, e.network, "network", g.network[0])
	printStage(t, e.network, "gathering of symbols", g.gather[0])
	printStage(t, e.output, "hash", e.hashing[0])
	coding := e.coding[0]
	printStage(t, coding, "entropy coding", g.coding[0])
	printBeside(t, e.network, g.network[0], coding, "entropy coding beside networks", g.coding[0])
	printBeside(t, e.network, g.network[0], e.search, "motion search beside networks", e.find[0])
	printBeside(t, e.network, g.network[0], e.output, "hash beside networks", e.hashing[0])
	return coded
}

func profileDecoder(t *testing.T, b *backend, o *inference.CodingOptions, payloads []inference.CodedFrame) {
	fd, err := b.OpenDecoder(o)
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	var w hostWatch
	received := 0
	receive := func() error {
		received++
		_, err := fd.Receive()
		return err
	}
	var start time.Time
	for n := range payloads {
		if n == len(payloads)/3 {
			w, start = hostWatch{}, time.Now()
		}
		if n-received == o.InFlight {
			w.time(t, "Receive", receive)
		}
		w.time(t, "Submit", func() error { return fd.Submit(&payloads[n]) })
	}
	for received < len(payloads) {
		w.time(t, "Receive", receive)
	}
	rest := len(payloads) - len(payloads)/3
	t.Logf("%11.1f us  a frame decoded", micros(time.Since(start))/float64(rest))
	w.print(t, rest)
	d := fd.(*decoder)
	if err := d.sync(); err != nil {
		t.Fatal(err)
	}
	g := d.graphs["inter"]
	parts := map[string]*part{}
	for name, calls := range map[string][]call{
		"network alone":       d.net.frameCalls(g.plan, 0, nil),
		"entropy decoding, z": decodeCalls(d.tables, g.sections, 0, d.net.frameParameters(), d.memory),
		// A level goes on where the one before it ended: both together begin anew each time.
		"entropy decoding, z and y": append(decodeCalls(d.tables, g.sections, 0, d.net.frameParameters(), d.memory),
			decodeCalls(d.tables, g.sections, 1, d.net.frameParameters(), d.memory)...),
	} {
		if parts[name], err = d.network.part(calls); err != nil {
			t.Fatal(err)
		}
	}
	printStage(t, d.network, "network and entropy decoding", g.network[0])
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		printStage(t, d.network, name, parts[name])
	}
}
