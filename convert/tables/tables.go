// Package tables computes the integer tables of a model file that follow from formulas alone: entropy coding,
// exponentials, pixels. Everything is float64 arithmetic that gives the same integers on every machine; nothing of it
// runs in the codec, which reads the integers from the model file.
package tables

import (
	"slices"

	"github.com/nvcodec/nvcodec/rans"
)

// A Table is an integer tensor of a model file.
type Table struct {
	Name  string
	Type  string // "I8", "I16", "I32", "U8", "U16" or "U32"
	Shape []int
	Data  []int64
}

// All returns the tables that every model of the nvc1 family has: entropy coding, vectors and motion search, in name order.
func All() []Table { return slices.Concat(entropyTables(), vectorTables(), motionTables()) }

// Exp returns the tables of the log step q: e[q+1536] = exp(q/512)·2^16 and r[q+1536] = exp(-q/512)·2^16, q in ±1536.
func Exp() (e, r []int32) {
	const n = 1536
	e, r = make([]int32, 2*n+1), make([]int32, 2*n+1)
	for q := -n; q <= n; q++ {
		v := int32(round(float64(expf(float64(q)/512) * 65536)))
		e[n+q], r[n-q] = v, v
	}
	return e, r
}

// PixelsIn returns (v/255 - 1/2)·2^f, halves up, for the 256 samples v; f at most 15.
func PixelsIn(f int) []int16 {
	t := make([]int16, 256)
	for v := range t {
		a := (2*v-255)<<f*2 + 510 // over 1020, and the sum is floored
		q := a / 1020
		if a%1020 < 0 {
			q--
		}
		t[v] = int16(q)
	}
	return t
}

// Tables of symbols: 0..63 zero-mean Gaussians by scale index, 64..127 logistic ones by z scale.
const (
	gaussTables = 64
	tableCount  = 128
	maxK        = 127 // z is clamped to it; a Gaussian of the largest scale fades well before
)

// Sigma returns the standard deviation of scale index i.
func Sigma(i int) float64 {
	const lnRatio = 5.3853287435376664436 // ln(24/0.11)
	return float64(0.11 * expf(float64(float64(i)*lnRatio)/63))
}

const (
	ln002   = -3.9120230054281460586 // ln 0.02
	ln2500  = 7.8240460108562921172  // ln(50/0.02)
	zStep   = ln2500 / 63
	zScales = 64
)

// ZScale returns the logistic scale of z table i: 64 values from 0.02 to 50 in equal ratios of 1.132. Half a step away
// costs at most 0.004 bit a symbol.
func ZScale(i int) float64 { return expf(ln002 + float64(float64(i)*zStep)) }

// ZScales returns for each QP and channel the index of the nearest scale to exp(l0 + l1·t + l2·t²), t = (qp-31.5)/31.5.
func ZScales(ls [3][]float64) [][]uint8 {
	out := make([][]uint8, 64)
	for qp := range out {
		t := float64((float64(qp) - 31.5) / 31.5)
		out[qp] = make([]uint8, len(ls[0]))
		for c := range out[qp] {
			l := float64(ls[0][c]+float64(ls[1][c]*t)) + float64(ls[2][c]*float64(t*t))
			out[qp][c] = uint8(min(zScales-1, max(0, round(float64((l-ln002)/zStep)))))
		}
	}
	return out
}

// gauss returns the mass of [k-½, k+½] under a Gaussian, by the 3-point Gauss-Legendre rule on 64 pieces, none wider
// than σ/7: the error is below 1e-7 of any mass that counts.
func gauss(k int, sigma float64) float64 {
	const pieces = 64
	const norm = 0.39894228040143267794 // 1/sqrt(2π)
	const node = 0.77459666924148337704 // sqrt(3/5)
	sum := 0.0
	for i := range pieces {
		mid := float64(k) - 0.5 + float64((float64(i)+0.5)/pieces)
		for _, n := range [3][2]float64{{-node, 5.0 / 18}, {0, 8.0 / 18}, {node, 5.0 / 18}} {
			x := float64((mid + float64(n[0]*(0.5/pieces))) / sigma)
			if e := float64(float64(x*x) * 0.5); e < 60 {
				sum += float64(n[1] * expf(-e))
			}
		}
	}
	return float64(float64(sum*norm) / float64(sigma*pieces))
}

// logistic returns the mass of [k-½, k+½] under a logistic distribution.
func logistic(k int, scale float64) float64 {
	cdf := func(x float64) float64 { // x ≤ 0 keeps the tail's digits
		x = float64(x / scale)
		if x < -700 {
			return 0
		}
		e := expf(x)
		return float64(e / (1 + e))
	}
	if k == 0 {
		return 1 - float64(2*cdf(-0.5))
	}
	k = max(k, -k)
	return cdf(0.5-float64(k)) - cdf(-0.5-float64(k))
}

// tail is the mass that the training's rate estimate adds to each value for the escape code.
func tail(k int) float64 { return float64(1e-5 * expf(-float64(k)/8)) }

// A distribution is a table before it is laid out: symbol 0 is the escape, symbol 1+K+k the value k.
type distribution struct {
	k    int // largest magnitude that has a symbol
	freq []int
}

// distributionOf turns the mass of each magnitude into frequencies: symmetric, each at least 1, 65536 in all. A
// magnitude has a symbol while it is worth a whole slot (and ±1 always); all others share the escape, so that a table
// holds about 7.6 σ + 2 symbols and the common ones fit a first-level cache together. Value 0 takes what rounding leaves.
func distributionOf(mass func(k int) float64, clamped bool) distribution {
	p := func(k int) float64 { return mass(k) + tail(k) }
	k := 1
	for k < maxK && float64(p(k+1)*65536) >= 1 {
		k++
	}
	rest := 0.0      // mass beyond k, both signs
	const end = 1024 // beyond it nothing is worth 1e-7
	for m := k + 1; m < end; m++ {
		rest += float64(2 * p(m))
	}
	edge := 0.0
	if clamped && k == maxK { // values that would lie beyond are clamped to the edge
		for m := k + 1; m < end; m++ {
			edge += mass(m)
			rest -= float64(2 * mass(m))
		}
	}
	d := distribution{k: k, freq: make([]int, 2*k+2)}
	d.freq[0] = max(1, round(float64(rest*65536)))
	left := 65536 - d.freq[0]
	for m := 1; m <= k; m++ {
		v := p(m)
		if m == k {
			v += edge
		}
		f := max(1, round(float64(v*65536)))
		d.freq[1+k+m], d.freq[1+k-m] = f, f
		left -= 2 * f
	}
	d.freq[1+k] = left
	return d
}

func distributionFor(table int) distribution {
	if table < gaussTables {
		s := Sigma(table)
		return distributionOf(func(k int) float64 { return gauss(k, s) }, false)
	}
	s := ZScale(table - gaussTables)
	return distributionOf(func(k int) float64 { return logistic(k, s) }, true)
}

// cost returns the entropy of a table in 1/4096 bit.
func (d *distribution) cost() int64 {
	sum := 0.0
	for _, f := range d.freq {
		sum += float64(float64(f) / 65536 * float64(float64(16-float64(logf(float64(f))/ln2))*4096))
	}
	return int64(round(sum))
}

// entropyTables returns entropy.cost U16[128], entropy.size U8[128][2] (buckets as a power of two, K) and entropy.split
// U16[n], all tables' buckets one after the other; package rans says what a split is.
func entropyTables() []Table {
	cost := Table{Name: "entropy.cost", Type: "U16", Shape: []int{tableCount}}
	size := Table{Name: "entropy.size", Type: "U8", Shape: []int{tableCount, 2}}
	split := Table{Name: "entropy.split", Type: "U16"}
	for i := range tableCount {
		d := distributionFor(i)
		log := 2
		for 1<<log < len(d.freq) {
			log++
		}
		cost.Data = append(cost.Data, d.cost())
		size.Data = append(size.Data, int64(log), int64(d.k))
		for _, v := range rans.Split(d.freq, log) {
			split.Data = append(split.Data, int64(v))
		}
	}
	split.Shape = []int{len(split.Data)}
	return []Table{cost, size, split}
}
