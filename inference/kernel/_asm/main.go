// Command _asm writes the AVX2 kernels: run go generate in the directory above.
package main

import . "github.com/mmcloughlin/avo/build"

func main() {
	ConstraintExpr("!purego")
	for _, positions := range linPositions {
		lin(positions)
	}
	actRow()
	dwRow("dwRowAVX2", false)
	dwRow("dwRowWideAVX2", true)
	actSum4()
	pointwise()
	scale()
	pairs := shuffles()
	compensate(pairs, 16)
	compensate(pairs, 8)
	unpack()
	satd16()
	Generate()
}
