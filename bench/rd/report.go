package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nvcodec/nvcodec/metrics"
)

func isPeer(name string) bool {
	return slices.ContainsFunc(append(peers, jpeg, x265Intra), func(p peer) bool { return p.name == name })
}

func ourNames(rs []*clipResult) []string {
	var out []string
	for _, n := range slices.Sorted(maps.Keys(rs[0].Curves)) {
		if !isPeer(n) {
			out = append(out, n)
		}
	}
	return out
}

func curve(ps []point, payload bool) []metrics.Point {
	out := make([]metrics.Point, len(ps))
	for i, p := range ps {
		out[i] = metrics.Point{Rate: float64(p.Bytes), PSNR: p.PSNRY}
		if payload {
			out[i].Rate = float64(p.Payload)
		}
	}
	return out
}

// report is Markdown: every point of ours, then BD-rates of each model against each peer.
func report(rs []*clipResult) string {
	var b strings.Builder
	if len(rs) == 0 {
		return "no clips\n"
	}
	names := ourNames(rs)
	for _, name := range names {
		fmt.Fprintf(&b, "\n### %s: bits a pixel (whole file / payload alone) and PSNR-Y\n\n| clip | frames |", name)
		for _, p := range rs[0].Curves[name] {
			fmt.Fprintf(&b, " QP %s |", p.Setting)
		}
		fmt.Fprintf(&b, "\n|---|---|%s\n", strings.Repeat("---|", len(rs[0].Curves[name])))
		for _, r := range rs {
			fmt.Fprintf(&b, "| %s %s | %d |", r.Name, r.Size, r.Frames)
			px := float64(r.Width * r.Height * r.Frames)
			for _, p := range r.Curves[name] {
				fmt.Fprintf(&b, " %.4f / %.4f, %.2f dB |", float64(p.Bytes)*8/px, float64(p.Payload)*8/px, p.PSNRY)
			}
			fmt.Fprintln(&b)
		}
	}
	for _, name := range names {
		for _, fit := range []metrics.Fit{metrics.PCHIP, metrics.Cubic} {
			bdTable(&b, rs, name, fit)
		}
	}
	if len(names) > 1 {
		fmt.Fprintf(&b, "\n### BD-rate against %s (PCHIP, whole files)\n", names[0])
		for _, name := range names[1:] {
			between(&b, rs, names[0], name)
		}
	}
	return b.String()
}

// between is a line of each clip's BD-rate and their mean.
func between(b *strings.Builder, rs []*clipResult, anchor, name string) {
	fmt.Fprintf(b, "\n%s: ", name)
	sum, n := 0.0, 0
	for _, r := range rs {
		x, err := metrics.BDRate(curve(r.Curves[anchor], false), curve(r.Curves[name], false), metrics.PCHIP)
		if err != nil {
			fmt.Fprintf(b, "%s %v, ", r.Name, err)
			continue
		}
		sum, n = sum+x, n+1
		fmt.Fprintf(b, "%s %+.1f %%, ", r.Name, x)
	}
	fmt.Fprintf(b, "mean %+.1f %%\n", sum/float64(max(1, n)))
}

func bdTable(b *strings.Builder, rs []*clipResult, name string, fit metrics.Fit) {
	var anchors []string
	for _, p := range peers {
		if _, ok := rs[0].Curves[p.name]; ok {
			anchors = append(anchors, p.name)
		}
	}
	if len(anchors) == 0 {
		return
	}
	kind := map[metrics.Fit]string{metrics.PCHIP: "piecewise cubic (PCHIP)", metrics.Cubic: "one cubic"}[fit]
	fmt.Fprintf(b, "\n### BD-rate of %s, %s: whole file / payload alone\n\n| clip |", name, kind)
	for _, a := range anchors {
		fmt.Fprintf(b, " %s |", a)
	}
	fmt.Fprintf(b, "\n|---|%s\n", strings.Repeat("---|", len(anchors)))
	sums, counts := make([][2]float64, len(anchors)), make([]int, len(anchors))
	for _, r := range rs {
		fmt.Fprintf(b, "| %s |", r.Name)
		for i, a := range anchors {
			whole, err1 := metrics.BDRate(curve(r.Curves[a], false), curve(r.Curves[name], false), fit)
			payload, err2 := metrics.BDRate(curve(r.Curves[a], false), curve(r.Curves[name], true), fit)
			if err1 != nil || err2 != nil {
				fmt.Fprint(b, " – |")
				continue
			}
			fmt.Fprintf(b, " %+.1f / %+.1f %% |", whole, payload)
			sums[i][0] += whole
			sums[i][1] += payload
			counts[i]++
		}
		fmt.Fprintln(b)
	}
	fmt.Fprint(b, "| **mean** |")
	for i, s := range sums {
		if counts[i] == 0 {
			fmt.Fprint(b, " – |")
			continue
		}
		n := float64(counts[i])
		fmt.Fprintf(b, " **%+.1f / %+.1f %%** |", s[0]/n, s[1]/n)
	}
	fmt.Fprintln(b)
}
