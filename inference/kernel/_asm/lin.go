package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// linPositions are the heights of the register tiles: six positions by sixteen outputs fill twelve of the sixteen
// registers with sums; the smaller ones finish what six leaves over.
var linPositions = []int{6, 4, 2, 1}

// A panel holds what sixteen outputs need, as int32 words: bias, mul, the odd elements of mul, then for each pair of
// inputs one word for each output with both weights as int16.
const (
	panelBias    = 0
	panelMul     = 64
	panelMulOdd  = 128
	panelWeights = 192
)

// unroll is the number of input pairs in one turn of the inner loop.
const unroll = 4

// lin writes the kernel that applies one panel to tiles x positions consecutive positions.
func lin(positions int) {
	TEXT(fmt.Sprintf("lin%dAVX2", positions), NOSPLIT,
		"func(dst, src, res *int16, panel *int32, rq *[14]int64, srcStride, dstStride, pairs, odd, tiles int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("lin%dAVX2 applies a panel to %d x tiles positions. Strides are in bytes; odd is 1 when a last", positions, positions),
		"input follows the pairs; res, unless nil, has the stride of dst.")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	res := Load(Param("res"), GP64())
	panel := Load(Param("panel"), GP64())
	q := requantiser{Load(Param("rq"), GP64()).(GPVirtual)}
	srcStride := Load(Param("srcStride"), GP64())
	tiles := Load(Param("tiles"), GP64())

	var acc [6][2]VecVirtual
	for p := range positions {
		acc[p] = [2]VecVirtual{YMM(), YMM()}
	}

	Label("tile")
	for p := range positions {
		for i := range 2 {
			VMOVDQU(Mem{Base: panel, Disp: panelBias + 32*i}, acc[p][i])
		}
	}
	// x0 walks along positions 0..2 of the tile, x3 along 3..5: an address can hold a stride once or twice.
	x0, x3, w := GP64(), GP64(), GP64()
	MOVQ(src, x0)
	if positions > 3 {
		LEAQ(Mem{Base: src, Index: srcStride, Scale: 2}, x3)
		ADDQ(srcStride, x3)
	}
	LEAQ(Mem{Base: panel, Disp: panelWeights}, w)
	input := func(p, disp int) Mem {
		base := x0
		if p >= 3 {
			base, p = x3, p-3
		}
		m := Mem{Base: base, Disp: disp}
		if p > 0 {
			m.Index, m.Scale = srcStride, uint8(p)
		}
		return m
	}
	// madd adds one pair of inputs at every position: each 32-bit lane gains w0*x0 + w1*x1, which cannot overflow.
	madd := func(pair int, broadcast func(ops ...Op)) {
		w0, w1 := YMM(), YMM()
		VMOVDQU(Mem{Base: w, Disp: 64 * pair}, w0)
		VMOVDQU(Mem{Base: w, Disp: 64*pair + 32}, w1)
		for p := range positions {
			x, t := YMM(), YMM()
			broadcast(input(p, 4*pair), x)
			VPMADDWD(w0, x, t)
			VPADDD(t, acc[p][0], acc[p][0])
			VPMADDWD(w1, x, x)
			VPADDD(x, acc[p][1], acc[p][1])
		}
	}
	loop := func(name string, count GPVirtual, pairs int) {
		Label(name)
		for i := range pairs {
			madd(i, VPBROADCASTD)
		}
		ADDQ(U8(4*pairs), x0)
		if positions > 3 {
			ADDQ(U8(4*pairs), x3)
		}
		ADDQ(I32(64*pairs), w)
		DECQ(count)
		JNZ(LabelRef(name))
	}
	count := GP64()
	Load(Param("pairs"), count)
	SHRQ(U8(2), count)
	JZ(LabelRef("single"))
	loop("unrolled", count, unroll)
	Label("single")
	Load(Param("pairs"), count)
	ANDQ(U8(unroll-1), count)
	JZ(LabelRef("last"))
	loop("rest", count, 1)
	Label("last")
	Load(Param("odd"), count)
	TESTQ(count, count)
	JZ(LabelRef("finish"))
	// The second weight of this pair is zero, so the input may stand twice: nothing past the end is read.
	madd(0, VPBROADCASTW)

	Label("finish")
	dstStride := Load(Param("dstStride"), GP64())
	CMPQ(q.wide(), U8(0))
	JNE(LabelRef("wide"))
	store := func(name string, requantise func(acc VecVirtual, mul, mulOdd Op, count VecVirtual)) {
		shift := XMM()
		VMOVQ(q.count(), shift)
		for p := range positions {
			for i := range 2 {
				requantise(acc[p][i], Mem{Base: panel, Disp: panelMul + 32*i}, Mem{Base: panel, Disp: panelMulOdd + 32*i}, shift)
			}
			out := acc[p][0]
			VPACKSSDW(acc[p][1], out, out)
			skip := fmt.Sprintf("%s%d", name, p)
			TESTQ(res, res)
			JZ(LabelRef(skip))
			VPADDSW(Mem{Base: res}, out, out)
			ADDQ(dstStride, res)
			Label(skip)
			VMOVDQU(out, Mem{Base: dst})
			ADDQ(dstStride, dst)
		}
	}
	store("narrow", q.narrow)
	Label("next")
	if positions > 3 {
		LEAQ(Mem{Base: src, Index: srcStride, Scale: 4}, src)
		if positions == 6 {
			LEAQ(Mem{Base: src, Index: srcStride, Scale: 2}, src)
		}
	} else {
		LEAQ(Mem{Base: src, Index: srcStride, Scale: uint8(positions)}, src)
	}
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	VZEROUPPER()
	RET()

	Label("wide")
	store("broad", q.broad)
	JMP(LabelRef("next"))
}
