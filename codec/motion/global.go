package motion

// global finds the one vector that predicts the picture best: of zero and the best displacements of both full searches,
// refined from four samples down to a quarter. A quarter of the blocks, those of even rows and columns, stand for all.
// Ties go to the earlier, zero first.
func (s *Searcher) global() vector {
	d4, d8 := s.full4.overall(), s.full8.overall()
	best, least := s.better(vector{}, []vector{{}, {int16(16 * d4.y), int16(16 * d4.x)}, {int16(32 * d8.y), int16(32 * d8.x)}}, 1<<62)
	for step := int16(16); step > 0; step /= 2 {
		var list []vector
		for _, d := range around8 {
			if v := (vector{best.y + d.y*step, best.x + d.x*step}); s.inside(v) {
				list = append(list, v)
			}
		}
		best, least = s.better(best, list, least)
	}
	return best
}

// better returns the vector of list whose SATD over the blocks is least and below that of best, or best.
func (s *Searcher) better(best vector, list []vector, least int64) (vector, int64) {
	rows := make([][]int64, s.hb/2)
	each(s.threads, s.hb/2, func(i, _ int) {
		sums := make([]int64, len(list))
		for j := 0; j < s.wb; j += 2 {
			for n, v := range list {
				sums[n] += int64(s.satdAt(2*i, j, v))
			}
		}
		rows[i] = sums
	})
	for n, v := range list {
		var sum int64
		for _, r := range rows {
			sum += r[n]
		}
		if sum < least {
			best, least = v, sum
		}
	}
	return best, least
}
