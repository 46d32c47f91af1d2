package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// flat writes a kernel over n values, a multiple of 16 and not 0. setup loads constants and returns the step for
// sixteen values.
func flat(name, params, doc string, setup func() (step func(x VecVirtual))) {
	TEXT(name, NOSPLIT, "func(dst, src *int16, n int, "+params+")")
	Pragma("noescape")
	Doc(name + " " + doc + " n is a positive multiple of 16.")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	n := Load(Param("n"), GP64())
	step := setup()
	Label("loop")
	x := YMM()
	VMOVDQU(Mem{Base: src}, x)
	step(x)
	VMOVDQU(x, Mem{Base: dst})
	ADDQ(U8(32), src)
	ADDQ(U8(32), dst)
	SUBQ(U8(16), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// broadcast16 loads an int16 parameter into every lane.
func broadcast16(name string) VecVirtual {
	v := YMM()
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	VPBROADCASTW(p.Addr, v)
	return v
}

func pointwise() {
	flat("clampAVX2", "lo, hi int16", "limits values to lo..hi.", func() func(VecVirtual) {
		lo, hi := broadcast16("lo"), broadcast16("hi")
		return func(x VecVirtual) {
			VPMAXSW(lo, x, x)
			VPMINSW(hi, x, x)
		}
	})
	flat("requantDownAVX2", "factor int16", "computes rnd(x*factor, 15).", func() func(VecVirtual) {
		factor := broadcast16("factor")
		return func(x VecVirtual) { VPMULHRSW(factor, x, x) }
	})
	flat("requantUpAVX2", "down int", "computes sat16(x << (16-down)).", func() func(VecVirtual) {
		count, zero := XMM(), YMM()
		p, err := Param("down").Resolve()
		if err != nil {
			panic(err)
		}
		VMOVQ(p.Addr, count)
		VPXOR(zero, zero, zero)
		return func(x VecVirtual) {
			hi := YMM()
			VPUNPCKHWD(x, zero, hi) // x << 16, the upper four of each half
			VPUNPCKLWD(x, zero, x)
			VPSRAD(count, hi, hi)
			VPSRAD(count, x, x)
			VPACKSSDW(hi, x, x)
		}
	})
}

// scale multiplies by a factor of each channel.
func scale() {
	TEXT("scaleAVX2", NOSPLIT, "func(dst, src *int16, m *int32, rq *[14]int64, c, n int, up uint)")
	Pragma("noescape")
	Doc("scaleAVX2 computes n > 0 positions of c channels, a positive multiple of 8, with the factors m << up.")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	m := Load(Param("m"), GP64())
	q := requantiser{Load(Param("rq"), GP64()).(GPVirtual)}
	c := Load(Param("c"), GP64())
	n := Load(Param("n"), GP64())
	up := XMM()
	p, err := Param("up").Resolve()
	if err != nil {
		panic(err)
	}
	VMOVQ(p.Addr, up)
	shift := XMM()
	VMOVQ(q.count(), shift)

	body := func(name string, requantise func(acc VecVirtual, mul, mulOdd Op, count VecVirtual)) {
		Label(name)
		j := GP64()
		XORQ(j, j)
		Label(name + "Chunk")
		x, mul, mulOdd := YMM(), YMM(), YMM()
		VPMOVSXWD(Mem{Base: src}, x)
		VMOVDQU(Mem{Base: m, Index: j, Scale: 4}, mul)
		VPSLLD(up, mul, mul)
		VPSRLQ(U8(32), mul, mulOdd)
		requantise(x, mul, mulOdd, shift)
		VPACKSSDW(x, x, x)
		VPERMQ(U8(0x08), x, x)
		VMOVDQU(x.AsX(), Mem{Base: dst})
		ADDQ(U8(16), src)
		ADDQ(U8(16), dst)
		ADDQ(U8(8), j)
		CMPQ(j, c)
		JL(LabelRef(name + "Chunk"))
		DECQ(n)
		JNZ(LabelRef(name))
		VZEROUPPER()
		RET()
	}
	CMPQ(q.wide(), U8(0))
	JNE(LabelRef("wide"))
	body("narrow", q.narrow)
	body("wide", q.broad)
}
