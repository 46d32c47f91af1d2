package tables

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed vectors.txt
var vectorStart string

// vectorTables returns entropy.vector.prob U16[615] and entropy.vector.weight U8[615]. They are fitted to data and so
// kept as data, in vectors.txt.
func vectorTables() []Table {
	prob := Table{Name: "entropy.vector.prob", Type: "U16"}
	weight := Table{Name: "entropy.vector.weight", Type: "U8"}
	for line := range strings.Lines(vectorStart) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var p, n int64
		if _, err := fmt.Sscan(line, &p, &n); err != nil {
			panic("tables: vectors.txt: " + err.Error())
		}
		prob.Data, weight.Data = append(prob.Data, p), append(weight.Data, n)
	}
	prob.Shape, weight.Shape = []int{len(prob.Data)}, []int{len(weight.Data)}
	return []Table{prob, weight}
}
