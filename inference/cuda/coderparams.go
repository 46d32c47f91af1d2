//go:build cuda

package cuda

import "unsafe"

// What the kernels of the entropy coder and the host tell each other; kernels/coder_layout.cuh has the same structures.

const (
	maxLevels    = 8
	maxLanes     = 1024
	groupLanes   = 32
	maxGroups    = maxLanes / groupLanes
	tileSymbols  = 4096
	reportBlocks = 32
	aheadRounds  = 8
	tableHalf    = 64
	wordRing     = 2048 // bytes of shared memory ahead of a decoder's tables

	closingShared = 512 * 11 // bytes that closing a decoder's level takes
)

// frameParameters is what varies from frame to frame, in device memory. The network's kernels read the first two.
type frameParameters struct {
	QP, Threshold int32
	Lanes         int32  // decoder
	InputBytes    uint32 // decoder: what stageInput returned
	Input         uint64 // decoder: address of the payload's image in page-locked memory
	Result        uint64 // address of the result in page-locked memory
}

// encoderResult leads what an encoder's kernels leave for the host; the words follow.
type encoderResult struct {
	Lanes, Hash, Words, Coded uint32
	Begin                     [maxGroups]uint32
	State                     [maxLanes]uint32
}

// payloadImage leads what a decoder's kernels read; the words follow.
type payloadImage struct {
	State [maxLanes]uint32
	Begin [maxGroups + 1]uint32
	Count [maxGroups]uint32
	_     [3]uint32
}

// Kinds of a coderIssue.
const (
	issueNone = iota
	issueEndsEarly
	issueNoClass
	issueEscapeRange
	issueLeftOver
	issueLaneEnd
)

type coderIssue struct{ Kind, At, Value, _ uint32 }

// decoderResult is what a decoder's kernels leave for the host.
type decoderResult struct {
	Level       [maxLevels]coderIssue
	End         coderIssue
	Range       [maxLevels]uint64
	Tail, Coded uint32
	Hash, _     uint32
}

// Heads of the coder's memory on the device; the host only needs their sizes.
type (
	encoderHead struct {
		_ uint64
		_ [2]uint32
		_ [2][maxLevels]uint32
		_ [maxLanes]uint32
		_ [2][maxGroups]uint32
	}
	decoderHead struct {
		_ decoderResult
		_ uint64
		_ [2]uint32
		_ [maxLevels]uint32
		_ [maxGroups]uint32
		_ [3][maxLevels]uint32
	}
)

// structure reads b as what kernels have left there or will read.
func structure[T any](b []byte) *T {
	_ = b[unsafe.Sizeof(*new(T))-1]
	return (*T)(unsafe.Pointer(unsafe.SliceData(b)))
}

// wordsIn reads n 16-bit words of b from byte at on.
func wordsIn(b []byte, at uintptr, n int) []uint16 {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(b[at:][:2*n]))), n)
}
