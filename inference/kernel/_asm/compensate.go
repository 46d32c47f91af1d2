package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// shuffles makes the bytes 2k+i, 2k+i+1 for i = 0..7 of each 128-bit half: the two samples under taps 2k and 2k+1.
func shuffles() Mem {
	m := GLOBL("tapPairs", RODATA|NOPTR)
	for k := range 4 {
		for i := range 32 {
			DATA(32*k+i, U8(2*k+i%16/2+i%2))
		}
	}
	return m
}

// compensate writes the kernel of one block: width is 16 with 8 taps, or 8 with 4.
//
// The first pass filters rows and needs no more than int16: the taps of one filter have an absolute sum of at most 112,
// and 112*255 < 2^15. It leaves each row interleaved with the one above for the second pass, which VPMADDWD sums in int32.
func compensate(pairs Mem, width int) {
	taps := width / 2
	vec := func() VecVirtual {
		if width == 16 {
			return YMM()
		}
		return XMM()
	}
	size := 2 * width // bytes of a register
	name := fmt.Sprintf("compensate%dAVX2", width)
	TEXT(name, 0, "func(dst, src *byte, dstStride, srcStride, rows int, tapsX *int8, tapsY *int16)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s writes rows x %d samples, 1..%d rows. src is the sample under the first taps of the first one; %d",
		name, width, width, width+8),
		fmt.Sprintf("samples of each of rows+%d rows are read.", taps-1))
	temp := AllocLocal((width + taps) * 2 * size)
	src := Load(Param("src"), GP64())
	stride := Load(Param("srcStride"), GP64())
	rows := Load(Param("rows"), GP64())
	tapsX := Load(Param("tapsX"), GP64())

	var shuffle, tap [4]VecVirtual
	for k := range taps / 2 {
		shuffle[k], tap[k] = vec(), vec()
		VMOVDQU(pairs.Offset(32*k), shuffle[k])
		VPBROADCASTW(Mem{Base: tapsX, Disp: 2 * k}, tap[k])
	}
	above, p, count := vec(), GP64(), GP64()
	VPXOR(above, above, above) // pairs with nothing: that entry is not read
	LEAQ(temp, p)
	LEAQ(Mem{Base: rows, Disp: taps - 1}, count)
	Label("across")
	x, sum := vec(), vec()
	VMOVDQU(Mem{Base: src}, x.AsX())
	if width == 16 {
		VINSERTI128(U8(1), Mem{Base: src, Disp: 8}, x, x)
	}
	for k := range taps / 2 {
		t := vec()
		VPSHUFB(shuffle[k], x, t)
		VPMADDUBSW(tap[k], t, t)
		if k == 0 {
			sum = t
		} else {
			VPADDW(t, sum, sum)
		}
	}
	lo, hi := vec(), vec()
	VPUNPCKLWD(sum, above, lo)
	VPUNPCKHWD(sum, above, hi)
	VMOVDQU(lo, Mem{Base: p})
	VMOVDQU(hi, Mem{Base: p, Disp: size})
	VMOVDQA(sum, above)
	ADDQ(stride, src)
	ADDQ(U8(2*size), p)
	DECQ(count)
	JNZ(LabelRef("across"))

	dst := Load(Param("dst"), GP64())
	dstStride := Load(Param("dstStride"), GP64())
	tapsY := Load(Param("tapsY"), GP64())
	for k := range taps / 2 {
		tap[k] = vec()
		VPBROADCASTD(Mem{Base: tapsY, Disp: 4 * k}, tap[k])
	}
	half, round := GP32(), vec()
	MOVL(U32(2048), half)
	VMOVD(half, round.AsX())
	VPBROADCASTD(round.AsX(), round)
	LEAQ(temp, p)
	Label("down")
	var acc [2]VecVirtual
	for i := range 2 {
		acc[i] = vec()
		for k := range taps / 2 {
			t := vec()
			VPMADDWD(Mem{Base: p, Disp: 2*size*(1+2*k) + size*i}, tap[k], t)
			if k == 0 {
				VPADDD(t, round, acc[i])
			} else {
				VPADDD(t, acc[i], acc[i])
			}
		}
		VPSRAD(U8(12), acc[i], acc[i])
	}
	out := acc[0]
	VPACKSSDW(acc[1], out, out)
	VPACKUSWB(out, out, out)
	if width == 16 {
		VPERMQ(U8(0x08), out, out)
		VMOVDQU(out.AsX(), Mem{Base: dst})
	} else {
		VMOVQ(out.AsX(), Mem{Base: dst})
	}
	ADDQ(dstStride, dst)
	ADDQ(U8(2*size), p)
	DECQ(rows)
	JNZ(LabelRef("down"))
	VZEROUPPER()
	RET()
}
