//go:build !purego

package kernel

import "golang.org/x/sys/cpu"

//go:generate sh -c "cd _asm && go run . -pkg kernel -out ../avx2_amd64.s -stubs ../avx2_amd64.go"

func init() {
	overlays = append(overlays, avx2)
}

// avx2 replaces what AVX2 computes faster. cpu.X86.HasAVX2 includes the operating system's consent.
func avx2(s Set) (Set, bool) {
	if !cpu.X86.HasAVX2 {
		return s, false
	}
	s.Name = "avx2"
	s.Lin = linAVX2
	s.DWAct = dwActAVX2
	s.ActSum4 = actSum4Vector
	s.Scale = scaleVector
	s.Requant = requantVector
	s.Clamp = clampVector
	s.Compensate = compensateVector
	s.Pack = packRows
	s.Unpack = unpackVector
	s.SATD16 = satd16Vector
	return s, true
}
