package codec

import (
	"fmt"
	"math/bits"

	"github.com/nvcodec/nvcodec/yuv"
)

// maxPTS bounds presentation times, so that no sum of two overflows.
const maxPTS = 1 << 60

// A clock foretells the time of each frame, so that a record states one only where the source is irregular.
//
// With a frame rate it counts in exact fractions of a tick, and learns the phase from what it gets wrong: 30 frames/s
// in milliseconds come as 0, 33, 67, 100 …, and after at most two stated times any such sequence is foretold, however
// it began. Without a frame rate it repeats the last difference.
type clock struct {
	rate        bool
	step, rest  uint64 // a frame lasts step + rest/den ticks
	den         uint64
	whole       int64 // the next frame's time is whole + frac/den, halves rounded up
	frac        uint64
	last, delta int64 // without a rate
}

func newClock(timeBase, rate yuv.Rational) clock {
	if rate.Num == 0 {
		return clock{}
	}
	den := uint64(timeBase.Num) * uint64(rate.Num)
	num := uint64(timeBase.Den) * uint64(rate.Den)
	return clock{rate: true, step: num / den, rest: num % den, den: den}
}

// half is the smallest frac that rounds up.
func (c *clock) half() uint64 { return c.den - c.den/2 }

// start sets the clock to a GOP that begins with the given frame at pts; it foretells the frame after. The phase is
// that of a stream whose frame 0 fell on a whole tick.
func (c *clock) start(frame, pts int64) {
	if !c.rate {
		c.last, c.delta = pts, 1
		return
	}
	hi, lo := bits.Mul64(uint64(frame)%c.den, c.rest)
	c.frac = bits.Rem64(hi, lo, c.den)
	c.whole = pts
	if c.frac >= c.half() {
		c.whole--
	}
	c.advance()
}

func (c *clock) advance() {
	c.whole += int64(c.step)
	c.frac += c.rest
	if c.frac >= c.den {
		c.frac -= c.den
		c.whole++
	}
}

// next is the foretold time of the next frame.
func (c *clock) next() int64 {
	if !c.rate {
		return c.last + c.delta
	}
	if c.frac >= c.half() {
		return c.whole + 1
	}
	return c.whole
}

// set tells the clock the next frame's real time and moves on to the frame after.
func (c *clock) set(pts int64) error {
	if pts <= -maxPTS || pts >= maxPTS {
		return fmt.Errorf("time %d, outside ±2^60", pts)
	}
	if !c.rate {
		c.last, c.delta = pts, pts-c.last
		return nil
	}
	switch off := pts - c.next(); off {
	case 0:
	case 1: // the least phase that rounds to pts
		c.whole, c.frac = pts-1, c.half()
		if c.frac == c.den {
			c.whole, c.frac = pts, 0
		}
	case -1: // the greatest
		c.whole, c.frac = pts, c.half()-1
	default: // frames left out, or another rate: the phase stays
		c.whole += off
	}
	c.advance()
	return nil
}
