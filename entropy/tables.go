package entropy

import (
	"fmt"
	"math"

	"github.com/nvcodec/nvcodec/rans"
)

// Layout of the tables: a symbol's table is its scale index (Gaussian), or LogisticTables plus its z scale.
const (
	LogisticTables = 64
	TableCount     = 128
	MaxK           = 127 // largest magnitude that has a symbol of its own
)

// Tables holds a model's entropy tables, checked. It may be shared.
type Tables struct {
	rans  *rans.Tables
	k     [TableCount]int16 // values -k..k have symbols of their own
	freq  [TableCount][]int // by symbol; only for IdealBits
	cost  [TableCount]int64
	start [contexts]counter
}

// NewTables builds the tables from a model's tensors, which it checks:
//
//	entropy.size           U8  [128][2]  n (2..8) and K (1..127) of each table, 2K+2 ≤ 2^n
//	entropy.split          U16 [Σ 2^n]   the splits of all tables, one after the other (package rans); symbol 0 is the escape, symbol 1+K+k the value k
//	entropy.cost           U16 [128]     mean cost of a symbol in 1/4096 bit
//	entropy.vector.prob    U16 [615]     start probability of each context of the vector coder, 16..65520 of 65536
//	entropy.vector.weight  U8  [615]     and its weight, 0..60
func NewTables(get func(name string) (shape []int, data []int32, ok bool)) (*Tables, error) {
	tensor := func(name string, lo, hi int32, shape ...int) ([]int32, error) {
		s, d, ok := get(name)
		if !ok {
			return nil, fmt.Errorf("entropy: model has no tensor %q", name)
		}
		want := 1
		for i, n := range shape {
			want *= n
			if len(s) != len(shape) || s[i] != n {
				return nil, fmt.Errorf("entropy: %s has shape %v, want %v", name, s, shape)
			}
		}
		if len(d) != want {
			return nil, fmt.Errorf("entropy: %s has %d elements, want %d", name, len(d), want)
		}
		for i, v := range d {
			if v < lo || v > hi {
				return nil, fmt.Errorf("entropy: %s: element %d is %d, want %d to %d", name, i, v, lo, hi)
			}
		}
		return d, nil
	}
	size, err := tensor("entropy.size", 1, MaxK, TableCount, 2)
	if err != nil {
		return nil, err
	}
	total := 0
	for i := range TableCount {
		n, k := size[2*i], size[2*i+1]
		if n < 2 || n > rans.MaxLog || 2*k+2 > 1<<n {
			return nil, fmt.Errorf("entropy: entropy.size: table %d: 2^%d buckets for K = %d", i, n, k)
		}
		total += 1 << n
	}
	split, err := tensor("entropy.split", 0, 65535, total)
	if err != nil {
		return nil, err
	}
	cost, err := tensor("entropy.cost", 0, 65535, TableCount)
	if err != nil {
		return nil, err
	}
	prob, err := tensor("entropy.vector.prob", minProb, 65536-minProb, contexts)
	if err != nil {
		return nil, err
	}
	weight, err := tensor("entropy.vector.weight", 0, maxWeight, contexts)
	if err != nil {
		return nil, err
	}
	t := &Tables{}
	specs := make([]rans.Spec, TableCount)
	for i := range specs {
		n, k := int(size[2*i]), int(size[2*i+1])
		s := make([]uint16, 1<<n)
		for b := range s {
			s[b] = uint16(split[b])
		}
		split = split[1<<n:]
		specs[i] = rans.Spec{Log: n, Symbols: 2*k + 2, First: int16(-k - 1), Split: s}
		t.k[i], t.cost[i] = int16(k), int64(cost[i])
		if t.freq[i], err = specs[i].Freqs(); err != nil {
			return nil, fmt.Errorf("entropy: entropy.split: table %d: %w", i, err)
		}
	}
	if t.rans, err = rans.NewTables(specs); err != nil {
		return nil, fmt.Errorf("entropy: %w", err)
	}
	for i := range t.start {
		t.start[i] = counter{p: prob[i], n: weight[i]}
	}
	return t, nil
}

// Lanes returns the number of lanes for p; see the package's comment.
func (t *Tables) Lanes(p *Payload) int {
	sum, coded := int64(0), int64(0)
	for _, level := range p.Levels {
		for i := range level {
			s := &level[i]
			T := threshold(s, p.Threshold)
			for _, x := range s.Tables {
				if int(x) >= T {
					sum += t.cost[x&(TableCount-1)]
					coded++
				}
			}
		}
	}
	return lanesFor(sum, coded)
}

// lanesFor takes the estimate in 1/4096 bit and the number of symbols coded. 256 bytes are 2^23/4096 bits.
func lanesFor(sum, coded int64) int {
	most := max(sum>>23, min(sum>>21, coded>>13))
	l := 1
	for l < rans.MaxLanes && most >= int64(2*l) {
		l *= 2
	}
	return l
}

// IdealBits returns what the tables' frequencies make of p: -log2 of each, escapes included; z is the first level and
// y the others. It is floating point and for metrics only.
func IdealBits(t *Tables, p *Payload) (vectors, z, y float64) {
	if p.Vectors != nil {
		m := modeller{}
		m.reset(t)
		if walk(&m, p.Vectors, p.VectorsBefore, p.HB, p.WB, false) == nil {
			for _, o := range m.ops {
				vectors += 16 - math.Log2(float64(o.freq))
			}
		}
	}
	for l, level := range p.Levels {
		sum := 0.0
		for i := range level {
			s := &level[i]
			T := threshold(s, p.Threshold)
			for j, x := range s.Tables {
				if int(x) < T {
					continue
				}
				x &= TableCount - 1
				k, v := int(t.k[x]), int(s.Symbols[j])
				symbol := 1 + k + v
				if v < -k || v > k {
					symbol = 0
					c := escapeClass(v, k)
					sum += float64(2*c + 2)
				}
				sum += 16 - math.Log2(float64(t.freq[x][symbol]))
			}
		}
		if l == 0 {
			z += sum
		} else {
			y += sum
		}
	}
	return vectors, z, y
}
