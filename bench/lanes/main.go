// Lanes says what the entropy coder's lanes cost in rate, and how many symbols a lane then has, for the rule of
// docs/FORMAT.md and for lanes of fixed bytes.
//
//	go run ./bench/lanes -qps 21,42,63 a.y4m b.y4m
//
// Clips are coded whole by the CPU; bench/tile makes large ones of small ones.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nvcodec/nvcodec/codec"
	"github.com/nvcodec/nvcodec/entropy"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/models"
	"github.com/nvcodec/nvcodec/pipeio"
	"github.com/nvcodec/nvcodec/rans"
	"github.com/nvcodec/nvcodec/yuv"
)

// A rule gives a frame's lanes by its symbols and the bytes that the tables expect of them.
type rule struct {
	name  string
	lanes func(bytes int) int // nil: the format's
}

var rules = []rule{{"the rule", nil}, {"256 bytes", fixed(256)}, {"128 bytes", fixed(128)}, {"64 bytes", fixed(64)}}

func fixed(each int) func(int) int {
	return func(bytes int) int {
		l := 1
		for l < rans.MaxLanes && bytes >= 2*l*each {
			l *= 2
		}
		return l
	}
}

// A tally is what a rule costs over a clip.
type tally struct{ extra, lanes, mean, most int }

// A watcher is a backend that looks at the symbols of every frame.
type watcher struct {
	inference.Backend
	tables  *entropy.Tables
	coder   *entropy.Encoder
	cost    []int
	frames  int
	symbols int
	tallies []tally
}

type watched struct {
	inference.Session
	w *watcher
}

func (w *watcher) Open(m *inference.Model, s inference.Size, threads int, encode bool) (inference.Session, error) {
	session, err := w.Backend.Open(m, s, threads, encode)
	if err == nil {
		w.tables, err = entropy.NewTables(m.Ints)
	}
	if err != nil {
		return nil, err
	}
	w.coder, w.cost = entropy.NewEncoder(w.tables), w.tables.Flat().Cost
	return &watched{session, w}, nil
}

func (s *watched) Encode(f *inference.Frame, src *yuv.Planes) ([]inference.Section, error) {
	sections, err := s.Session.Encode(f, src)
	if err == nil {
		err = s.w.look(sections, f.Threshold)
	}
	return sections, err
}

// look codes a frame's symbols anew for every rule, and over one lane.
func (w *watcher) look(sections []inference.Section, threshold int) error {
	p := entropy.Payload{Threshold: threshold}
	n, e := 0, 0
	for i := range sections {
		s := &sections[i]
		if s.Level == len(p.Levels) {
			p.Levels = append(p.Levels, nil)
		}
		p.Levels[s.Level] = append(p.Levels[s.Level], entropy.Section{Symbols: s.Symbols, Tables: s.Tables, Skip: s.Skip})
		for _, t := range s.Tables {
			if !s.Skip || int(t) >= threshold {
				n, e = n+1, e+w.cost[t]
			}
		}
	}
	var b []byte
	bytes := func(lanes int) (int, error) {
		var err error
		b, err = w.coder.Append(b[:0], &p, lanes)
		return len(b), err
	}
	one, err := bytes(1)
	if err != nil {
		return err
	}
	w.frames++
	w.symbols += n
	for i, r := range rules {
		l := 0
		if r.lanes == nil {
			l = w.tables.Lanes(&p)
		} else {
			l = r.lanes(e / (8 * 4096))
		}
		all, err := bytes(l)
		if err != nil {
			return err
		}
		t := &w.tallies[i]
		t.extra, t.lanes, t.mean, t.most = t.extra+all-one, t.lanes+l, t.mean+n/l, max(t.most, n/l)
	}
	return nil
}

func main() {
	name := flag.String("model", "nvc1-base", "model")
	qps := flag.String("qps", "42", "QPs")
	threshold := flag.Int("skip-threshold", -1, "skip threshold (-1: the model's)")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: lanes [flags] CLIP …")
		flag.PrintDefaults()
		os.Exit(3)
	}
	fmt.Print("| clip | QP | bytes a frame | symbols a frame |")
	for _, r := range rules {
		fmt.Printf(" %s |", r.name)
	}
	fmt.Println("\n|" + strings.Repeat("---|", 4+len(rules)))
	for _, clip := range flag.Args() {
		for _, qp := range strings.Split(*qps, ",") {
			if err := run(context.Background(), *name, clip, qp, *threshold); err != nil {
				fmt.Fprintln(os.Stderr, "lanes:", err)
				os.Exit(1)
			}
		}
	}
}

// run codes one clip and prints its line.
func run(ctx context.Context, name, clip, qp string, threshold int) error {
	m, err := models.ByName(name)
	if err != nil {
		return err
	}
	src, err := pipeio.Open(ctx, clip, pipeio.OpenOptions{})
	if err != nil {
		return err
	}
	defer src.Close()
	all := inference.Backends()
	w := &watcher{Backend: all[len(all)-1], tallies: make([]tally, len(rules))}
	o := codec.DefaultOptions()
	o.Model, o.Backend = m, w
	if o.QPI, err = strconv.Atoi(qp); err != nil {
		return fmt.Errorf("QP: %w", err)
	}
	o.QPP, o.Threshold = o.QPI, threshold
	enc, err := codec.NewEncoder(io.Discard, src.Format(), o)
	if err != nil {
		return err
	}
	defer enc.Abort()
	total := 0
	for {
		frame, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		info, err := enc.Write(ctx, frame)
		if err != nil {
			return err
		}
		total += info.Bytes
	}
	if w.frames == 0 {
		return fmt.Errorf("%s: no frames", clip)
	}
	f := src.Format()
	fmt.Printf("| %s %dx%d | %s | %d | %d |", strings.TrimSuffix(filepath.Base(clip), ".y4m"), f.W, f.H, qp, total/w.frames, w.symbols/w.frames)
	base := total - w.tallies[0].extra // with one lane
	for _, t := range w.tallies {
		fmt.Printf(" %+.2f %%, %d lanes, %d (%d) |", 100*float64(t.extra)/float64(base), t.lanes/w.frames, t.mean/w.frames, t.most)
	}
	fmt.Println()
	return nil
}
