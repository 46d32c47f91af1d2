package inference

import "github.com/nvcodec/nvcodec/inference/kernel"

// The arithmetic of latent coding, docs/MODEL.md. Slices hold whole positions of c channels.

// codedHalf returns the channels that step codes at position (row, col): the first half when row+col+step is even.
func codedHalf(row, col, step, c int) (from, to int) {
	if (row+col+step)&1 == 0 {
		return 0, c / 2
	}
	return c / 2, c
}

// scaleIndex is clamp(rnd(8v, F) + 16, 0, 63).
func scaleIndex(v int16, f uint) uint8 {
	return uint8(min(max(kernel.Rnd(8*int64(v), f)+16, 0), 63))
}

// expPlace is where the tables of exp and exp(-q) hold q.
func expPlace(q int16) int { return min(max(int(q), -ExpLimit), ExpLimit) + ExpLimit }

// symbol is the encoder's k = clamp(rnd(ys - mean, Fm), ±(32767 >> Fm)) with ys = rnd(y*R[q], 16 + Fy - Fm), kept
// wide: |y*R| < 2^46.
func symbol(y, q, mean int16, rexp []int32, shift, fm uint) int16 {
	ys := kernel.Rnd(int64(y)*int64(rexp[expPlace(q)]), shift)
	limit := int64(32767) >> fm
	return int16(min(max(kernel.Rnd(ys-int64(mean), fm), -limit), limit))
}

// latent is yhat = sat16((k << Fm) + mean).
func latent(k, mean int16, fm uint) int16 {
	return kernel.Sat16(int64(k)<<fm + int64(mean))
}

// unstep is sat16(rnd(yhat*E[q], 16 + Fm - Fo)).
func unstep(yhat, q int16, exp []int32, shift uint) int16 {
	return kernel.Sat16(kernel.Rnd(int64(yhat)*int64(exp[expPlace(q)]), shift))
}

// symbolZ is clamp(rnd(z, F), ±127).
func symbolZ(z int16, f uint) int16 {
	return int16(min(max(kernel.Rnd(int64(z), f), -127), 127))
}
