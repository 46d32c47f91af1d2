package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
)

type pair struct{ encode, decode float64 }

// A line of the table; figures are frames a second, 0 where nothing was measured.
type line struct {
	model           string
	w, h, qp        int
	device, kernels string
	network         pair
	coding          pair
	stream          pair
	bytes           int64 // of the stream
	memory          int64 // of the device, of one coder and its model
}

type table struct {
	o   *options
	out io.Writer
}

func (t *table) head() {
	fmt.Fprintf(t.out, "Frames a second, encode / decode; median of %d runs of %d frames behind %d.\n\n", t.o.runs, t.o.frames, t.o.warm)
	fmt.Fprintln(t.out, "| model | size | QP | network alone | with entropy coding | planes to stream and back | bits a pixel | device memory | kernels |")
	fmt.Fprintln(t.out, "|---|---|---|---|---|---|---|---|---|")
}

func (t *table) line(l *line) {
	pixels := float64(l.w) * float64(l.h) * float64(t.o.warm+t.o.runs*t.o.frames)
	fmt.Fprintf(t.out, "| %s | %dx%d | %d | %s | %s | %s | %.4f | %d MiB | %s %s |\n", l.model, l.w, l.h, l.qp, l.network, l.coding, l.stream,
		float64(8*l.bytes)/pixels, l.memory>>20, l.device, l.kernels)
}

func (p pair) String() string {
	f := func(x float64) string {
		switch {
		case x == 0:
			return "–"
		case x < 100:
			return fmt.Sprintf("%.1f", x)
		}
		return fmt.Sprintf("%.0f", x)
	}
	return f(p.encode) + " / " + f(p.decode)
}

var networkLine = regexp.MustCompile(`^BenchmarkNetwork/dir=(\w+)/model=([^/]+)/size=(\d+x\d+)/impl=[^,]+,(\S+?)(?:-\d+)?\s.*?([\d.]+) frames/s`)

// readNetwork returns the median of each line's frames a second by "encode nvc1-base 1920x1088 sm_80".
func readNetwork(name string) (map[string]float64, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := map[string][]float64{}
	s := bufio.NewScanner(f)
	for s.Scan() {
		m := networkLine.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		x, err := strconv.ParseFloat(m[5], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		key := fmt.Sprintf("%s %s %s %s", m[1], m[2], m[3], m[4])
		all[key] = append(all[key], x)
	}
	medians := map[string]float64{}
	for key, v := range all {
		slices.SortFunc(v, cmp.Compare)
		medians[key] = v[len(v)/2]
	}
	return medians, s.Err()
}
