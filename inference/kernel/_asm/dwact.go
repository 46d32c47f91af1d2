package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// actRow activates one row of sixteen channels and pairs it with the row above.
func actRow() {
	TEXT("actRowAVX2", NOSPLIT, "func(pairs, above, src *int16, stride, w int, f uint)")
	Pragma("noescape")
	Doc("actRowAVX2 replaces the row above [w][16] by act(src), whose positions lie stride bytes apart, and writes",
		"pairs [w][32]: each value of the row above followed by the one below it, in the order of panelOrder.")
	a := loadActivation()
	pairs := Load(Param("pairs"), GP64())
	above := Load(Param("above"), GP64())
	src := Load(Param("src"), GP64())
	stride := Load(Param("stride"), GP64())
	w := Load(Param("w"), GP64())
	Label("position")
	old, x, lo, hi := YMM(), YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: src}, x)
	a.apply(x)
	VMOVDQU(Mem{Base: above}, old)
	VMOVDQU(x, Mem{Base: above})
	VPUNPCKLWD(x, old, lo)
	VPUNPCKHWD(x, old, hi)
	VMOVDQU(lo, Mem{Base: pairs})
	VMOVDQU(hi, Mem{Base: pairs, Disp: 32})
	ADDQ(stride, src)
	ADDQ(U8(32), above)
	ADDQ(U8(64), pairs)
	DECQ(w)
	JNZ(LabelRef("position"))
	VZEROUPPER()
	RET()
}

// dwRow computes one row of sixteen channels from two rows of pairs. It keeps the weights in registers if the shift
// is at least 32; the other way of requantising needs those for itself.
func dwRow(name string, wide bool) {
	TEXT(name, NOSPLIT, "func(dst, upper, lower *int16, panel *int32, rq *[14]int64, stride, w int)")
	Pragma("noescape")
	if wide {
		Doc(name + " is dwRowAVX2 for shifts below 32.")
	} else {
		Doc(name+" computes a row of w positions, stride bytes apart in dst. upper holds the pairs of the rows above and",
			"here, lower those of the rows here and below; both begin one position to the left. Shifts are at least 32.")
	}
	dst := Load(Param("dst"), GP64())
	upper := Load(Param("upper"), GP64())
	lower := Load(Param("lower"), GP64())
	panel := Load(Param("panel"), GP64())
	q := requantiser{Load(Param("rq"), GP64()).(GPVirtual)}
	stride := Load(Param("stride"), GP64())
	w := Load(Param("w"), GP64())
	shift := XMM()
	VMOVQ(q.count(), shift)

	// Panel: bias, mul, odd mul, then for each row of pairs and column the weights of both halves.
	weight := func(row, col, half int) Mem {
		return Mem{Base: panel, Disp: panelWeights + 32*((row*3+col)*2+half)}
	}
	var weights [2][3][2]VecVirtual
	if !wide {
		for row := range 2 {
			for col := range 3 {
				for half := range 2 {
					weights[row][col][half] = YMM()
					VMOVDQU(weight(row, col, half), weights[row][col][half])
				}
			}
		}
	}
	Label("position")
	var acc [2]VecVirtual
	for half := range 2 {
		acc[half] = YMM()
		VMOVDQU(Mem{Base: panel, Disp: panelBias + 32*half}, acc[half])
		for row, base := range []Register{upper, lower} {
			for col := range 3 {
				at := Mem{Base: base, Disp: 64*col + 32*half}
				t := YMM()
				if wide {
					VMOVDQU(at, t)
					VPMADDWD(weight(row, col, half), t, t)
				} else {
					VPMADDWD(at, weights[row][col][half], t)
				}
				VPADDD(t, acc[half], acc[half])
			}
		}
	}
	for half := range 2 {
		mul, mulOdd := Mem{Base: panel, Disp: panelMul + 32*half}, Mem{Base: panel, Disp: panelMulOdd + 32*half}
		if wide {
			q.broad(acc[half], mul, mulOdd, shift)
		} else {
			q.narrow(acc[half], mul, mulOdd, shift)
		}
	}
	VPACKSSDW(acc[1], acc[0], acc[0])
	VMOVDQU(acc[0], Mem{Base: dst})
	ADDQ(stride, dst)
	ADDQ(U8(64), upper)
	ADDQ(U8(64), lower)
	DECQ(w)
	JNZ(LabelRef("position"))
	VZEROUPPER()
	RET()
}
