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

// sad16 sums absolute differences two rows at a time.
func sad16() {
	TEXT("sad16AVX2", NOSPLIT, "func(a *byte, strideA int, b *byte, strideB int) int32")
	Pragma("noescape")
	Doc("sad16AVX2 compares two blocks of 16x16 samples.")
	a := Load(Param("a"), GP64())
	strideA := Load(Param("strideA"), GP64())
	b := Load(Param("b"), GP64())
	strideB := Load(Param("strideB"), GP64())
	var sum [2]VecVirtual
	for i := range 8 {
		x, y := YMM(), YMM()
		VMOVDQU(Mem{Base: a}, x.AsX())
		VINSERTI128(U8(1), Mem{Base: a, Index: strideA, Scale: 1}, x, x)
		VMOVDQU(Mem{Base: b}, y.AsX())
		VINSERTI128(U8(1), Mem{Base: b, Index: strideB, Scale: 1}, y, y)
		VPSADBW(y, x, x)
		if i < 2 {
			sum[i] = x
		} else {
			VPADDQ(x, sum[i%2], sum[i%2])
		}
		if i < 7 {
			LEAQ(Mem{Base: a, Index: strideA, Scale: 2}, a)
			LEAQ(Mem{Base: b, Index: strideB, Scale: 2}, b)
		}
	}
	VPADDQ(sum[1], sum[0], sum[0])
	hi, total := XMM(), GP32()
	VEXTRACTI128(U8(1), sum[0], hi)
	VPADDQ(hi, sum[0].AsX(), sum[0].AsX())
	VPSHUFD(U8(0xee), sum[0].AsX(), hi)
	VPADDQ(hi, sum[0].AsX(), sum[0].AsX())
	VMOVD(sum[0].AsX(), total)
	Store(total, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
