package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// requantiser is the type of that name in requantise_amd64.go as the assembly sees it: base points to it.
type requantiser struct{ base GPVirtual }

func (q requantiser) round() Mem { return Mem{Base: q.base} }
func (q requantiser) lo() Mem    { return Mem{Base: q.base, Disp: 32} }
func (q requantiser) hi() Mem    { return Mem{Base: q.base, Disp: 64} }
func (q requantiser) count() Mem { return Mem{Base: q.base, Disp: 96} }
func (q requantiser) wide() Mem  { return Mem{Base: q.base, Disp: 104} }

// narrow turns the eight int32 sums of acc into rnd(acc*mul, shift) as int32, for shift >= 32 with count = shift-32.
// The bits wanted are then in the high half of each 64-bit product, and an arithmetic shift of that half equals one of
// the whole. mulOdd holds the odd elements of mul in its even ones, where VPMULDQ looks.
func (q requantiser) narrow(acc VecVirtual, mul, mulOdd Op, count VecVirtual) {
	odd := YMM()
	VPSRLQ(U8(32), acc, odd)
	VPMULDQ(mul, acc, acc)
	VPMULDQ(mulOdd, odd, odd)
	VPADDQ(q.round(), acc, acc)
	VPADDQ(q.round(), odd, odd)
	VPSRLQ(U8(32), acc, acc)
	VPBLENDD(U8(0xaa), odd, acc, acc)
	VPSRAD(count, acc, acc)
}

// broad is narrow for shift < 32 with count = shift. Each product is limited to lo..hi, the range that becomes int16
// when shifted, so that the low 32 bits of a logical shift are the answer already saturated.
func (q requantiser) broad(acc VecVirtual, mul, mulOdd Op, count VecVirtual) {
	odd := YMM()
	VPSRLQ(U8(32), acc, odd)
	VPMULDQ(mul, acc, acc)
	VPMULDQ(mulOdd, odd, odd)
	for _, v := range []VecVirtual{acc, odd} {
		VPADDQ(q.round(), v, v)
		mask, limit := YMM(), YMM()
		VPCMPGTQ(q.hi(), v, mask)
		VPBLENDVB(mask, q.hi(), v, v)
		VMOVDQU(q.lo(), limit)
		VPCMPGTQ(v, limit, mask)
		VPBLENDVB(mask, limit, v, v)
		VPSRLQ(count, v, v)
	}
	VPSLLQ(U8(32), odd, odd)
	VPBLENDD(U8(0xaa), odd, acc, acc)
}
