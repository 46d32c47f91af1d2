package inference

import "github.com/nvcodec/nvcodec/yuv"

// Size is a padded picture size in luma samples: multiples of 64, at most MaxPixels together.
type Size struct{ W, H int }

// Padded is the size that the network works at for pictures of w x h.
func Padded(w, h int) Size { return Size{(w + 63) &^ 63, (h + 63) &^ 63} }

// MaxPixels is the largest padded picture.
const MaxPixels = 1 << 27

// MaxVector is the largest component of a motion vector, in quarter luma samples.
const MaxVector = 2047

// A Frame says how one frame is computed.
type Frame struct {
	Graph     string  // "intra", "inter", "reset"
	QP        int     // 0..63, shift of the QP pattern applied
	Threshold int     // 0..64: y symbols of a lower scale index are not coded
	Vectors   []int16 // (vy,vx) [H/16][W/16], |v| ≤ MaxVector; nil where the graph has no vectors
}

// A Section is one run of symbols in coding order. Tables[i] is the table of symbol i: 0..63 Gaussian by scale index,
// 64..127 logistic (64 + the z scale of QP and channel). Where Skip is set, symbols whose table is below the frame's
// Threshold are not coded and are 0. Sections of one Level can be decoded in one go: their tables depend on symbols
// of lower levels only.
type Section struct {
	Name    string // "z", "y0", "y1"
	Level   int    // counts the calls of Decode's fill: in nvc1 0 for z, 1 for y0 and y1
	Symbols []int16
	Tables  []uint8
	Skip    bool
}

// A Backend computes graphs on one kind of device; all of them give the same bits.
type Backend interface {
	Name() string    // "cpu"
	Kernels() string // "generic", "avx2"
	// Open plans every graph of m for one size and takes the memory that they need. A session that encodes cannot
	// decode and the other way round. threads < 1 means as many as the machine has.
	Open(m *Model, s Size, threads int, encode bool) (Session, error)
}

// A Session holds the state of one video: the picture decoded before and what the last frame left for the next. It is
// not safe for concurrent use. Encode and Decode of the same frame leave equal state and picture; a call that fails
// leaves the state as it was.
type Session interface {
	// Encode computes the symbols of one frame and its decoded picture. src has the padded size; the sections, in the
	// order of the bitstream, are valid until the next call.
	Encode(f *Frame, src *yuv.Planes) ([]Section, error)
	// Decode computes the picture of one frame. For each level of coding it calls fill, which sets every Symbols (0
	// where skipped) and must not keep the sections.
	Decode(f *Frame, fill func(level []Section) error) error
	// Picture returns the decoded picture at padded size, valid until the next call; nil before the first.
	Picture() *yuv.Planes
	// Close gives back threads and memory.
	Close() error
}
