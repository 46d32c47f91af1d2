package tables

// Exponential returns e^x for |x| ≤ 700, the same float64 on every machine, for tables that depend on trained values.
func Exponential(x float64) float64 { return expf(x) }
