package motion

import (
	"fmt"
	"slices"
)

// Tables holds the integers that steer the search. They live in the model file.
type Tables struct {
	Lambda16 [64]int32 // by QP: what 1/16 bit is worth in 1/16 of SAD when vectors are chosen
	Search16 [64]int32 // the same in the search before, which does not know what neighbours will take
	Bits16   Rates
}

// With these limits a cost stays below 2^31: 16·65280 + 1023·4·(33·255 + 20·16) < 2^26, the costs of a block and three neighbours.
const (
	maxLambda = 1023
	maxBits16 = 255
)

// NewTables reads the tensors motion.lambda16 [64], motion.search16 [64] and motion.bits16 [615][2].
func NewTables(get func(name string) (shape []int, data []int32, ok bool)) (*Tables, error) {
	read := func(name string, limit int32, shape ...int) ([]int32, error) {
		s, data, ok := get(name)
		if !ok {
			return nil, fmt.Errorf("motion: tensor %s is missing", name)
		}
		n := 1
		for _, d := range shape {
			n *= d
		}
		if !slices.Equal(s, shape) || len(data) != n {
			return nil, fmt.Errorf("motion: tensor %s has shape %v, want %v", name, s, shape)
		}
		for i, v := range data {
			if v < 0 || v > limit {
				return nil, fmt.Errorf("motion: tensor %s holds %d at %d, want 0..%d", name, v, i, limit)
			}
		}
		return data, nil
	}
	t := new(Tables)
	lambda, err := read("motion.lambda16", maxLambda, 64)
	if err != nil {
		return nil, err
	}
	copy(t.Lambda16[:], lambda)
	if lambda, err = read("motion.search16", maxLambda, 64); err != nil {
		return nil, err
	}
	copy(t.Search16[:], lambda)
	cost, err := read("motion.bits16", maxBits16, contexts, 2)
	if err != nil {
		return nil, err
	}
	for c := range t.Bits16 {
		t.Bits16[c] = [2]int32(cost[2*c:])
	}
	return t, nil
}
