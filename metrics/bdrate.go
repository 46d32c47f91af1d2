package metrics

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/interp"
	"gonum.org/v1/gonum/mat"
)

// A Point is one encode: rate in any unit, quality in dB.
type Point struct{ Rate, PSNR float64 }

// Fit chooses how log-rate is interpolated over PSNR.
type Fit int

const (
	Cubic Fit = iota // one cubic through (or nearest to) all points: Bjøntegaard, VCEG-M33
	PCHIP            // monotone piecewise cubic (Fritsch-Butland), as in the JCT-VC spreadsheets
)

var errCurve = errors.New("metrics: BD-rate needs two curves of at least 4 points of rising rate and quality that overlap")

// BDRate returns the mean difference of rate of test against anchor at equal PSNR, in percent: negative is smaller.
func BDRate(anchor, test []Point, fit Fit) (float64, error) {
	a, b := slices.Clone(anchor), slices.Clone(test)
	for _, c := range [][]Point{a, b} {
		slices.SortFunc(c, func(p, q Point) int {
			if p.PSNR < q.PSNR {
				return -1
			}
			return 1
		})
		if len(c) < 4 {
			return 0, errCurve
		}
		for i, p := range c {
			if p.Rate <= 0 || i > 0 && (p.PSNR <= c[i-1].PSNR || p.Rate <= c[i-1].Rate) {
				return 0, errCurve
			}
		}
	}
	lo := max(a[0].PSNR, b[0].PSNR)
	hi := min(a[len(a)-1].PSNR, b[len(b)-1].PSNR)
	if hi <= lo {
		return 0, errCurve
	}
	ia, err := integral(a, lo, hi, fit)
	if err != nil {
		return 0, err
	}
	ib, err := integral(b, lo, hi, fit)
	if err != nil {
		return 0, err
	}
	return 100 * (math.Exp((ib-ia)/(hi-lo)) - 1), nil
}

// integral of the natural logarithm of rate over PSNR in [lo, hi].
func integral(c []Point, lo, hi float64, fit Fit) (float64, error) {
	xs, ys := make([]float64, len(c)), make([]float64, len(c))
	for i, p := range c {
		xs[i], ys[i] = p.PSNR, math.Log(p.Rate)
	}
	if fit == Cubic {
		return cubicIntegral(xs, ys, lo, hi)
	}
	var f interp.FritschButland
	if err := f.Fit(xs, ys); err != nil {
		return 0, err
	}
	knots := []float64{lo}
	for _, x := range xs {
		if x > lo && x < hi {
			knots = append(knots, x)
		}
	}
	knots = append(knots, hi)
	sum := 0.0
	for i := range len(knots) - 1 { // Simpson's rule is exact on each cubic
		p, q := knots[i], knots[i+1]
		sum += (q - p) / 6 * (f.Predict(p) + 4*f.Predict((p+q)/2) + f.Predict(q))
	}
	return sum, nil
}

func cubicIntegral(xs, ys []float64, lo, hi float64) (float64, error) {
	centre := xs[0] // small numbers keep the least-squares fit well conditioned
	m := mat.NewDense(len(xs), 4, nil)
	for i, x := range xs {
		for k := range 4 {
			m.Set(i, k, math.Pow(x-centre, float64(k)))
		}
	}
	var coef mat.VecDense
	if err := coef.SolveVec(m, mat.NewVecDense(len(ys), ys)); err != nil {
		return 0, err
	}
	sum := 0.0
	for k := range 4 {
		n := float64(k + 1)
		sum += coef.AtVec(k) / n * (math.Pow(hi-centre, n) - math.Pow(lo-centre, n))
	}
	return sum, nil
}
