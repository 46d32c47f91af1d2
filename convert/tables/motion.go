package tables

// motionTables returns what steers the encoder's motion search:
//
//	motion.lambda16  I32[64]      the SAD that one bit is worth when vectors are chosen, by QP
//	motion.search16  I32[64]      the same in the search before
//	motion.bits16    I32[615][2]  -16·log2 of the probability of each decision of the vector coder, 0 and 1, at its start
func motionTables() []Table {
	choose := Table{Name: "motion.lambda16", Type: "I32", Shape: []int{64}}
	search := Table{Name: "motion.search16", Type: "I32", Shape: []int{64}}
	for q := range 64 {
		choose.Data = append(choose.Data, int64(round(chooseLambda(q))))
		search.Data = append(search.Data, int64(round(searchLambda(q))))
	}
	prob := vectorTables()[0].Data
	bits := Table{Name: "motion.bits16", Type: "I32", Shape: []int{len(prob), 2}}
	for _, p := range prob {
		for _, n := range []int64{65536 - p, p} {
			bits.Data = append(bits.Data, int64(round(float64(-16*float64(logf(float64(float64(n)/65536))/ln2)))))
		}
	}
	return []Table{bits, choose, search}
}

// A bit is worth sqrt(255² / (24·100^(q/63))) of SAD at the distortion weight 24·100^(q/63). A little less, and more before the choice, is best
// where vectors point into decoded pictures (train/EXPERIMENTS.md, 9).
func chooseLambda(q int) float64 {
	const ln52 = 3.9522366299844536 // ln sqrt(255²/24)
	return float64(0.875 * expf(ln52-float64(float64(q)*ln100/126)))
}

// Before that a vector that differs from what was found for its neighbours counts four times as much.
func searchLambda(q int) float64 {
	return float64(192 * expf(-float64(float64(q)*ln100/126)))
}

const ln100 = 4.6051701859880913680
