package convert

import (
	"math"

	"github.com/nvcodec/nvcodec/yuv"
)

// Sigma is the standard deviation of a scale index, 0.11 to 24 in 64 equal ratios.
func Sigma(index int) float64 {
	return 0.11 * math.Exp(float64(index)*math.Log(24/0.11)/63)
}

// ideal returns −log2(p + 1e-5·exp(−|k|/8)), the measure that the network was trained by: the second term stands for
// the escape code of large symbols.
func ideal(p float64, k int) float64 {
	return -math.Log2(max(p, 0) + 1e-5*math.Exp(-math.Abs(float64(k))/8))
}

// GaussBits is the ideal length of symbol k at a scale index.
func GaussBits(k int, index int) float64 {
	s := Sigma(index) * math.Sqrt2
	r := math.Abs(float64(k))
	return ideal(0.5*(math.Erfc((r-0.5)/s)-math.Erfc((r+0.5)/s)), k)
}

// LogisticBits is the ideal length of symbol k of z at a scale.
func LogisticBits(k int, scale float64) float64 {
	r := math.Abs(float64(k)) // the tails are exact on the negative side
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	return ideal(sigmoid((0.5-r)/scale)-sigmoid((-0.5-r)/scale), k)
}

// Coded is what a frame costs and looks like.
type Coded struct {
	ZBits, YBits float64 // ideal, by the formula of training
	Picture      *yuv.Planes
}

// gaussTable holds the ideal bits of |k| < 32 for each index, since almost every symbol is that small.
var gaussTable = func() (t [64][32]float64) {
	for i := range t {
		for k := range t[i] {
			t[i][k] = GaussBits(k, i)
		}
	}
	return
}()

func gaussBits(k int16, index uint8) float64 {
	if a := max(k, -k); a >= 0 && int(a) < len(gaussTable[0]) {
		return gaussTable[index][a]
	}
	return GaussBits(int(k), int(index))
}

// zScale is the logistic scale of z's channel c.
func (p *Params) zScale(pre string, qp, c int) float64 {
	return min(max(math.Exp(atQP(p.ZPrior[pre], qp, c)), 0.02), 50)
}

func (t *Twin) result(e *evaluation[float32], f *Frame, pic *yuv.Planes) (Coded, error) {
	pre := prefix(f.Graph)
	r := Coded{Picture: pic}
	z, index := e.Values[pre+"z"], e.Values[pre+"index"]
	for i, v := range z.Data {
		r.ZBits += LogisticBits(int(v), t.params.zScale(pre, f.QP, i%z.C))
	}
	for _, name := range []string{pre + "k0", pre + "k1"} {
		k := e.Values[name]
		n := e.nodes[name]
		eachCoded(n, index.H, index.W, index.C, func(s, i int) { r.YBits += gaussBits(k.Symbols[s], index.Index[i]) })
	}
	return r, nil
}
