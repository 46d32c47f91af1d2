package inference

// A Graph is the whole computation of one frame type as data: intra, inter, or reset (an inter frame that rebuilds
// its memory from the prediction). The same graph serves the encoder and the decoder: a coding node (code_z,
// code_y) computes symbols in the encoder and takes them from the bitstream in the decoder, so a decoder runs only
// what its outputs need once coding nodes count as inputs (source and the analysis fall away), and the nodes that a
// coding node's tables depend on decide how many round trips to the entropy decoder a frame needs.
type Graph struct {
	Name  string // "intra", "inter", "reset"
	Nodes []Node // in an order in which inputs come before their readers
}

// A Kind says what a value holds.
type Kind uint8

const (
	Feature Kind = iota // int16 [H/Stride][W/Stride][C], F fractional bits
	Picture             // 8-bit planes at padded size
	Field               // int16 (vy,vx) for each 16x16 block, [H/16][W/16][2]
	Index               // uint8 scale index [H/Stride][W/Stride][C], 0..63
	Symbols             // int16 [H/Stride][W/Stride][C]: a coding node's symbols in coding order
)

// A Node computes one value. In names earlier nodes; Tensors names tensors of the model file by role ("w", "bias",
// "mul", "table"); Ints holds the integer attributes of the operator ("shift", "step", "lo", "hi", "r").
//
// Operators (inputs → output; attributes). One position of a feature at stride s covers s x s luma samples.
//
//	source                → Picture   the picture to code; encoder only
//	reference             → Picture   the picture decoded before
//	vectors               → Field     the frame's motion vectors
//	memory_in, feature_in → Feature   state kept by the frame before (C, F, Stride stated)
//	compensate ref mv     → Picture   motion compensation
//	pack pic              → Feature   C 96, or 192 with chroma repeated; stride 8; Tensors table (int16 [256])
//	move x mv             → Feature   moved by whole positions, (v+16)>>5
//	lin x [res]           → Feature   Tensors w, bias, mul; Ints shift; res: residual
//	dwact x               → Feature   Tensors w, bias, mul; Ints shift
//	actsum4 x             → Feature   C a quarter of x's
//	conv3 x               → Feature   3x3; Tensors w, bias, mul; Ints r (stride 1 or 2), shift
//	dw x                  → Feature   dwact without the activation
//	lookup x              → Feature   Tensors table (int16 [65536]), by x + 32768
//	sum2 x                → Feature   C half of x's
//	add a b               → Feature   sat16(a + b)
//	scale x               → Feature   Tensors table (int32 [64][C]); Ints shift; row = the frame's QP
//	requant x             → Feature   to this node's F
//	clamp x               → Feature   Ints lo, hi (raw int16 values)
//	concat a b …          → Feature   channels joined in order; one F
//	s2d x                 → Feature   Ints r; channel (dy*r+dx)*C + c; stride times r
//	d2s x                 → Feature   Ints r; the inverse
//	code_z x              → Feature   F 0; symbols clamp(rnd(x,F), ±127); Tensors table (uint8 [64][C]: logistic table by QP and channel)
//	index v               → Index     clamp(rnd(8v,F)+16, 0, 63)
//	code_y y q mean idx   → Symbols   Ints step; C half of y's; Tensors rexp (int32 [3073]): see MODEL.md
//	latent k mean [base]  → Feature   Ints step; sat16((k<<Fm)+mean) where the step codes, base or 0 elsewhere
//	unstep yhat q         → Feature   Tensors exp (int32 [3073]): sat16(rnd(yhat*E[q], 16+Fm-Fo)), Fo this node's F
//	picture head [pred]   → Picture   the decoded picture (C 96 or 192)
//	memory_out x, feature_out x       state for the next frame
//
// Step s of code_y and latent covers, at position (row, col), the channels [0,C/2) when row+col+s is even and
// [C/2,C) when it is odd; its symbols are stored [h][w][C/2] in that order.
type Node struct {
	Out     string
	Op      string
	In      []string
	Kind    Kind
	C       int
	F       int
	Stride  int
	Tensors map[string]string
	Ints    map[string]int
}
