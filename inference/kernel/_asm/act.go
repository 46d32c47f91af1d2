package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// activation holds the constants of act at f fractional bits.
type activation struct {
	zero, half, lowest VecVirtual // 0, 2^(f-1), -2^f
	count              VecVirtual // 15-f
}

// loadActivation makes them from the parameter f, 1..14.
func loadActivation() activation {
	f, one := GP64(), GP64()
	Load(Param("f"), RCX)
	MOVQ(RCX, f)
	MOVQ(I32(1), one)
	SHLQ(CL, one) // 2^f
	a := activation{YMM(), YMM(), YMM(), XMM()}
	VPXOR(a.zero, a.zero, a.zero)
	x := XMM()
	VMOVQ(one, x)
	VPBROADCASTW(x, a.lowest)
	VPSRLW(U8(1), a.lowest, a.half)
	VPSUBW(a.lowest, a.zero, a.lowest)
	SUBQ(U8(15), f)
	NEGQ(f)
	VMOVQ(f, a.count)
	return a
}

// apply replaces the sixteen values of x by act(x) = rnd(x*t, f), t = clamp(x + 2^(f-1), 0, 2^f).
//
// VPMULHRSW(a, b) is rnd(a*b, 15) exactly, and with b = t << (15-f) that is rnd(x*t, f). As t << (15-f) may be 2^15,
// which int16 lacks, both factors are negated: -t << (15-f) reaches -2^15. The one x without a negative, -32768,
// becomes 32767, which is as good since its t is 0. Saturating subtraction keeps -x - 2^(f-1) on its side of 0 and -2^f.
func (a activation) apply(x VecVirtual) {
	t := YMM()
	VPSUBSW(x, a.zero, x)
	VPSUBSW(a.half, x, t)
	VPMINSW(a.zero, t, t)
	VPMAXSW(a.lowest, t, t)
	VPSLLW(a.count, t, t)
	VPMULHRSW(t, x, x)
}

// actSum4 writes the gated sum of n positions of c >= 16 channels.
func actSum4() {
	TEXT("actSum4AVX2", NOSPLIT, "func(dst, src *int16, c, n int, f uint)")
	Pragma("noescape")
	Doc("actSum4AVX2 computes n > 0 positions of c >= 16 channels, the last sixteen perhaps twice.")
	a := loadActivation()
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	size := Load(Param("c"), GP64())
	n := Load(Param("n"), GP64())
	ADDQ(size, size)
	last, parts2 := GP64(), GP64()
	LEAQ(Mem{Base: size, Disp: -32}, last)
	LEAQ(Mem{Base: src, Index: size, Scale: 2}, parts2)
	bias := YMM()
	x := XMM()
	k := GP64()
	MOVQ(I32(16384), k)
	VMOVQ(k, x)
	VPBROADCASTW(x, bias)

	Label("position")
	j := GP64()
	XORQ(j, j)
	Label("chunk")
	// act is at least -2^10 (f = 14), so sums moved down by 2^14 cannot pass -2^15; one that saturates at the top is
	// more than 3*2^10 above int16's end, where the values still to come cannot bring it back; the last addition moves
	// the sum up again and saturates rightly.
	p, sum := GP64(), YMM()
	LEAQ(Mem{Base: src, Index: j, Scale: 1}, p)
	VMOVDQU(Mem{Base: p}, sum)
	a.apply(sum)
	VPSUBW(bias, sum, sum)
	for part := 1; part < 4; part++ {
		y := YMM()
		switch part {
		case 1:
			VMOVDQU(Mem{Base: p, Index: size, Scale: 1}, y)
		case 2:
			LEAQ(Mem{Base: parts2, Index: j, Scale: 1}, p)
			VMOVDQU(Mem{Base: p}, y)
		case 3:
			VMOVDQU(Mem{Base: p, Index: size, Scale: 1}, y)
		}
		a.apply(y)
		VPADDSW(y, sum, sum)
	}
	VPADDSW(bias, sum, sum)
	VMOVDQU(sum, Mem{Base: dst, Index: j, Scale: 1})
	ADDQ(U8(32), j)
	CMPQ(j, size)
	JGE(LabelRef("next"))
	CMPQ(j, last)
	CMOVQGT(last, j)
	JMP(LabelRef("chunk"))

	Label("next")
	ADDQ(size, dst)
	LEAQ(Mem{Base: src, Index: size, Scale: 4}, src)
	LEAQ(Mem{Base: parts2, Index: size, Scale: 4}, parts2)
	DECQ(n)
	JNZ(LabelRef("position"))
	VZEROUPPER()
	RET()
}
