package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// unpack writes the kernel of one row of packed positions.
func unpack() {
	TEXT("unpackAVX2", NOSPLIT, "func(y, u, v *byte, head, pred *int16, strideY, strideC, n int, f uint)")
	Pragma("noescape")
	Doc("unpackAVX2 writes the 8x8 and twice 4x4 samples of each of n > 0 positions; pred may be nil.")
	// rnd(255*x + 255*2^(f-1), f) = (255*x + 2^(f+7)) >> f; with f <= 15 all of it fits int32.
	factor, round, zero, count := YMM(), YMM(), YMM(), XMM()
	k := GP64()
	MOVQ(U32(255), k)
	VMOVQ(k, factor.AsX())
	VPBROADCASTD(factor.AsX(), factor)
	Load(Param("f"), RCX)
	VMOVQ(RCX, count)
	MOVQ(U32(128), k)
	SHLQ(CL, k)
	VMOVQ(k, round.AsX())
	VPBROADCASTD(round.AsX(), round)
	VPXOR(zero, zero, zero)
	planes := []Register{Load(Param("y"), GP64()), Load(Param("u"), GP64()), Load(Param("v"), GP64())}
	head := Load(Param("head"), GP64())
	pred := Load(Param("pred"), GP64())
	strideY := Load(Param("strideY"), GP64())
	strideC := Load(Param("strideC"), GP64())
	n := Load(Param("n"), GP64())

	// body computes channels 16i..16i+15; each half of the result then begins with eight samples.
	body := func(i int, predicted bool) VecVirtual {
		x, hi := YMM(), YMM()
		VMOVDQU(Mem{Base: head, Disp: 32 * i}, x)
		if predicted {
			VPADDSW(Mem{Base: pred, Disp: 32 * i}, x, x)
		}
		VPUNPCKHWD(zero, x, hi)
		VPUNPCKLWD(zero, x, x)
		for _, v := range []VecVirtual{hi, x} {
			VPMADDWD(factor, v, v)
			VPADDD(round, v, v)
			VPSRAD(count, v, v)
		}
		VPACKSSDW(hi, x, x)
		VPACKUSWB(x, x, x)
		return x
	}
	loop := func(name string, predicted bool) {
		Label(name)
		p := GP64()
		MOVQ(planes[0], p)
		for i := range 4 {
			x, hi := body(i, predicted), XMM()
			VEXTRACTI128(U8(1), x, hi)
			VMOVQ(x.AsX(), Mem{Base: p})
			VMOVQ(hi, Mem{Base: p, Index: strideY, Scale: 1})
			LEAQ(Mem{Base: p, Index: strideY, Scale: 2}, p)
		}
		for i, plane := range planes[1:] {
			x, hi := body(4+i, predicted), XMM()
			VEXTRACTI128(U8(1), x, hi)
			LEAQ(Mem{Base: plane, Index: strideC, Scale: 2}, p)
			VMOVD(x.AsX(), Mem{Base: plane})
			VPEXTRD(U8(1), x.AsX(), Mem{Base: plane, Index: strideC, Scale: 1})
			VMOVD(hi, Mem{Base: p})
			VPEXTRD(U8(1), hi, Mem{Base: p, Index: strideC, Scale: 1})
		}
		ADDQ(U8(8), planes[0])
		ADDQ(U8(4), planes[1])
		ADDQ(U8(4), planes[2])
		ADDQ(I32(192), head)
		if predicted {
			ADDQ(I32(192), pred)
		}
		DECQ(n)
		JNZ(LabelRef(name))
		VZEROUPPER()
		RET()
	}
	TESTQ(pred, pred)
	JNZ(LabelRef("predicted"))
	loop("alone", false)
	loop("predicted", true)
}

// satd16 takes four rows at a time. VPMADDUBSW is the first stage across: sums of two samples in the lower half of a
// register, their differences in the upper one. Both stages down follow, |x| <= 8*255 then. The last stage across is
// |a+b| + |a-b| = 2*max(|a|, |b|), and a lane adds eight such maxima, no more than 16320.
func satd16() {
	signs := GLOBL("satdSigns", RODATA|NOPTR)
	for i := range 32 {
		DATA(i, I8(1-i/16*(i%2)*2))
	}
	twos := GLOBL("satdTwos", RODATA|NOPTR)
	for i := range 16 {
		DATA(2*i, U16(2))
	}
	TEXT("satd16AVX2", NOSPLIT, "func(a *byte, strideA int, b *byte, strideB int) int32")
	Pragma("noescape")
	Doc("satd16AVX2 compares two blocks of 16x16 samples.")
	a := Load(Param("a"), GP64())
	strideA := Load(Param("strideA"), GP64())
	b := Load(Param("b"), GP64())
	strideB := Load(Param("strideB"), GP64())
	sign, sum := YMM(), YMM()
	VMOVDQU(signs, sign)
	// butterfly replaces x and y by x+y and x-y.
	butterfly := func(x, y *VecVirtual) {
		d := YMM()
		VPSUBW(*y, *x, d)
		VPADDW(*y, *x, *x)
		*y = d
	}
	for group := range 4 {
		var r [4]VecVirtual
		for i := range r {
			x, y := YMM(), YMM()
			VBROADCASTI128(Mem{Base: a}, x)
			VBROADCASTI128(Mem{Base: b}, y)
			VPMADDUBSW(sign, x, x)
			VPMADDUBSW(sign, y, y)
			VPSUBW(y, x, x)
			r[i] = x
			if group < 3 || i < 3 {
				ADDQ(strideA, a)
				ADDQ(strideB, b)
			}
		}
		butterfly(&r[0], &r[1])
		butterfly(&r[2], &r[3])
		butterfly(&r[0], &r[2])
		butterfly(&r[1], &r[3])
		for i := range r {
			VPABSW(r[i], r[i])
		}
		for i := 0; i < 4; i += 2 { // the even lanes of both registers against the odd ones
			even, odd := YMM(), YMM()
			VPSLLD(U8(16), r[i+1], even)
			VPBLENDW(U8(0xaa), even, r[i], even)
			VPSRLD(U8(16), r[i], odd)
			VPBLENDW(U8(0xaa), r[i+1], odd, odd)
			VPMAXSW(odd, even, even)
			if group == 0 && i == 0 {
				sum = even
			} else {
				VPADDW(even, sum, sum)
			}
		}
	}
	hi, total := XMM(), GP32()
	VPMADDWD(twos, sum, sum)
	VEXTRACTI128(U8(1), sum, hi)
	VPADDD(hi, sum.AsX(), sum.AsX())
	VPSHUFD(U8(0xee), sum.AsX(), hi)
	VPADDD(hi, sum.AsX(), sum.AsX())
	VPSHUFD(U8(0x55), sum.AsX(), hi)
	VPADDD(hi, sum.AsX(), sum.AsX())
	VMOVD(sum.AsX(), total)
	Store(total, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
