package kernel

import "fmt"

// Generic is the definition of every operator: plain loops in the order of docs/MODEL.md, built on every platform.
func Generic() Set {
	return Set{
		Name:       "generic",
		Lin:        linGeneric,
		DWAct:      dwActGeneric,
		ActSum4:    actSum4Generic,
		Scale:      scaleGeneric,
		Requant:    requantGeneric,
		Clamp:      clampGeneric,
		Compensate: compensateGeneric,
		Pack:       packGeneric,
		Unpack:     unpackGeneric,
		SATD16:     satd16Generic,
	}
}

// want panics unless a slice has the length that the operator states.
func want(what string, got, length int) {
	if got != length {
		panic(fmt.Sprintf("kernel: %s has %d values, want %d", what, got, length))
	}
}

// wantRows panics unless 0 <= y0 <= y1 <= rows.
func wantRows(y0, y1, rows int) {
	if y0 < 0 || y0 > y1 || y1 > rows {
		panic(fmt.Sprintf("kernel: rows %d to %d of %d", y0, y1, rows))
	}
}
