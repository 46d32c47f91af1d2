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

// Training chose vectors by sqrt(255² / (24·100^(q/63))), the SAD whose square is worth a bit at the distortion weight
// 24·100^(q/63), against costs that adapt from the first block on. Static costs and a search that goes further find
// the same prediction for fewer bits with a quarter more.
func chooseLambda(q int) float64 {
	const ln52 = 3.9522366299844536 // ln sqrt(255²/24)
	return float64(1.25 * expf(ln52-float64(float64(q)*ln100/126)))
}

// Before neighbours are chosen a vector that differs from what was found for them tends to cost more.
func searchLambda(q int) float64 {
	return float64(150 * expf(-float64(float64(q)*ln100/126)))
}

const ln100 = 4.6051701859880913680
