package codec

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/nvcodec/nvcodec/yuv"
)

// A regular source is foretold whatever its phase, after it has shown it: the times come from exact fractions.
func TestClockLearnsPhase(t *testing.T) {
	for _, c := range []struct {
		base, rate yuv.Rational
		most       int // times stated in 200 frames of the worst phase
	}{
		{yuv.Rational{Num: 1, Den: 30}, yuv.Rational{Num: 30, Den: 1}, 0},
		{yuv.Rational{Num: 1, Den: 1000}, yuv.Rational{Num: 25, Den: 1}, 0},
		{yuv.Rational{Num: 1, Den: 90000}, yuv.Rational{Num: 30000, Den: 1001}, 0},
		{yuv.Rational{Num: 1, Den: 1000}, yuv.Rational{Num: 30, Den: 1}, 1},
		{yuv.Rational{Num: 1, Den: 1000}, yuv.Rational{Num: 60, Den: 1}, 1},
		{yuv.Rational{Num: 1, Den: 1000}, yuv.Rational{Num: 24000, Den: 1001}, 8},
		{yuv.Rational{Num: 1, Den: 1000}, yuv.Rational{Num: 30000, Den: 1001}, 8},
	} {
		for phase := range 24 { // in 24ths of a tick
			num, den := c.base.Den*c.rate.Den, c.base.Num*c.rate.Num
			at := func(n int64) int64 { // round(n·num/den + phase/24)
				x := big.NewRat(n, 1)
				x.Mul(x, big.NewRat(num, den)).Add(x, big.NewRat(int64(phase), 24)).Add(x, big.NewRat(1, 2))
				return new(big.Int).Div(x.Num(), x.Denom()).Int64()
			}
			ck := newClock(c.base, c.rate)
			ck.start(0, at(0))
			stated := 0
			for n := int64(1); n < 200; n++ {
				if ck.next() != at(n) {
					stated++
				}
				if err := ck.set(at(n)); err != nil {
					t.Fatal(err)
				}
			}
			if stated > c.most || phase == 0 && stated > 0 {
				t.Errorf("%v at %v, phase %d/24: %d of 200 times had to be stated", c.base, c.rate, phase, stated)
			}
		}
	}
}

// A GOP of a stream that began on a whole tick is foretold from its own start alone.
func TestClockStartsInPhase(t *testing.T) {
	base, rate := yuv.Rational{Num: 1, Den: 1000}, yuv.Rational{Num: 30000, Den: 1001}
	whole := newClock(base, rate)
	whole.start(0, 5)
	for n := int64(1); n < 3000; n++ {
		pts := whole.next()
		whole.set(pts)
		part := newClock(base, rate)
		part.start(n, pts)
		if part.next() != whole.next() {
			t.Fatalf("frame %d: GOP foretells %d, stream %d", n+1, part.next(), whole.next())
		}
	}
}

// The clock against itself in math/big, over irregular times and extreme rates.
func TestClockAgainstBig(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		side := func() int64 { return min(maxRational, 1+int64(rnd.Uint64()>>(33+rnd.UintN(30)))) }
		base, rate := yuv.Rational{Num: side(), Den: side()}, yuv.Rational{Num: side(), Den: side()}
		step := new(big.Rat).Mul(big.NewRat(base.Den, base.Num), big.NewRat(rate.Den, rate.Num))
		c := newClock(base, rate)
		frame, pts := rnd.Int64N(1<<40), rnd.Int64N(1<<20)
		c.start(frame, pts)

		rounded := func(x *big.Rat) *big.Rat {
			x = new(big.Rat).Add(x, big.NewRat(1, 2))
			return new(big.Rat).SetInt(new(big.Int).Div(x.Num(), x.Denom()))
		}
		// the exact time: pts is its rounding, its fraction that of frame·step
		exact := new(big.Rat).Mul(new(big.Rat).SetInt64(frame), step)
		exact.Sub(exact, rounded(exact)).Add(exact, new(big.Rat).SetInt64(pts))
		exact.Add(exact, step)
		for k := range 50 {
			want := rounded(exact)
			if !want.Num().IsInt64() || want.Num().Int64() >= maxPTS {
				break
			}
			if got := c.next(); got != want.Num().Int64() {
				t.Fatalf("seed=%d frame %d: foretold %d, want %v", seed, k, got, want.Num())
			}
			off := rnd.Int64N(7) - 3
			pts = c.next() + off
			if c.set(pts) != nil {
				break
			}
			switch off {
			case 0:
			case 1:
				exact.Sub(new(big.Rat).SetInt64(pts), big.NewRat(int64(c.den/2), int64(c.den)))
			case -1:
				exact.Add(new(big.Rat).SetInt64(pts), big.NewRat(int64(c.half())-1, int64(c.den)))
			default:
				exact.Add(exact, new(big.Rat).SetInt64(off))
			}
			exact.Add(exact, step)
		}
	}
}

func TestClockWithoutRate(t *testing.T) {
	c := newClock(yuv.Rational{Num: 1, Den: 1000}, yuv.Rational{Num: 0, Den: 1})
	c.start(7, 100)
	for i, want := range []struct{ foretold, real int64 }{{101, 140}, {180, 180}, {220, 221}, {262, 262}, {303, 200}, {138, 200}} {
		if got := c.next(); got != want.foretold {
			t.Errorf("frame %d: foretold %d, want %d", i, got, want.foretold)
		}
		c.set(want.real)
	}
}

func TestClockBounds(t *testing.T) {
	for _, rate := range []yuv.Rational{{Num: 0, Den: 1}, {Num: 1, Den: maxRational}} {
		c := newClock(yuv.Rational{Num: 1, Den: maxRational}, rate)
		c.start(0, maxPTS-1)
		if err := c.set(maxPTS); err == nil {
			t.Errorf("rate %v: a time of 2^60 is taken", rate)
		}
		if err := c.set(-maxPTS); err == nil {
			t.Errorf("rate %v: a time of −2^60 is taken", rate)
		}
	}
}
