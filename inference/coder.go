package inference

import "github.com/nvcodec/nvcodec/yuv"

// MaxInFlight bounds CodingOptions.InFlight.
const MaxInFlight = 16

// DeviceInFlight is how many frames in flight keep a device from waiting for its host.
const DeviceInFlight = 8

// A CodingBackend codes whole frames where its sessions compute: network, motion search, entropy coding and picture
// hash. Payloads and pictures are the same, bit for bit, as those made from the Sections of a Session, and do not
// depend on how many frames are in flight.
type CodingBackend interface {
	Backend
	OpenEncoder(o *CodingOptions) (FrameEncoder, error)
	OpenDecoder(o *CodingOptions) (FrameDecoder, error)
}

// CodingOptions say what a coder is for.
type CodingOptions struct {
	Model    *Model
	W, H     int  // of the pictures; W and H rounded up to multiples of 64 are the padded size
	InFlight int  // frames that may be in flight together, 1..MaxInFlight
	Reach    int  // encoder: of searched motion vectors, in luma samples, 1..MaxVector/4
	Pictures bool // encoder: Coded.Picture is wanted
	NoHash   bool // decoder: Decoded.Hash is not wanted
	Threads  int  // of what the host computes; below 1 as many as the machine has
}

// Padded is the size that graphs work at.
func (o *CodingOptions) Padded() Size { return Padded(o.W, o.H) }

// HasVectors tells whether the frames of a graph carry motion vectors.
func (g *Graph) HasVectors() bool {
	for i := range g.Nodes {
		if g.Nodes[i].Op == "vectors" {
			return true
		}
	}
	return false
}

// A FrameEncoder codes the frames of one video in order. Each picture is loaded, then submitted before the next is loaded,
// then received; at most InFlight are loaded and not received. It is not safe for concurrent use. After a failure it
// only closes.
type FrameEncoder interface {
	// Load takes the next picture, of the options' W x H, copies it and begins its preparation.
	Load(src *yuv.Planes) error
	// Cut tells whether the picture loaded last begins a new scene against the one loaded before it, by
	// codec/motion's rule; false for the first.
	Cut() (bool, error)
	// Submit codes the picture loaded last. Of f the encoder keeps copies; without Vectors a graph that
	// needs them has them searched. The field of the frame before is that of the frame submitted before, and zero
	// after one without vectors.
	Submit(f *Frame) error
	// Receive waits for the oldest frame submitted and not received. What it returns is valid until the next Receive.
	Receive() (*Coded, error)
	// Close waits for what is in flight and gives everything back.
	Close() error
}

// Coded is one frame of a FrameEncoder.
type Coded struct {
	Payload []byte // docs/FORMAT.md, payload; its tail is the low half of Hash
	Lanes   int
	Hash    uint32      // CRC-32C of the rows of Picture's Y, U and V
	Vectors []int16     // as coded, (vy,vx) [H/16][W/16] of the padded picture; nil where the graph has none
	Picture *yuv.Planes // W x H, what a decoder decodes; nil unless the options ask for it
}

// A FrameDecoder decodes the frames of one video in order; at most InFlight are submitted and not received. It is not
// safe for concurrent use.
type FrameDecoder interface {
	// Submit takes the next frame and copies its payload. An error says that it cannot be decoded whatever the
	// payload; what is wrong with a payload shows in Receive.
	Submit(f *CodedFrame) error
	// Receive waits for the oldest frame submitted and not received. What it returns is valid until the next Receive
	// or Reset. A *PayloadError leaves the frames behind it undefined until Reset; after any other error the decoder
	// only closes.
	Receive() (*Decoded, error)
	// Reset forgets the frames in flight and the state: the next frame must need no other.
	Reset() error
	// Close waits for what is in flight and gives everything back.
	Close() error
}

// A CodedFrame is what a stream says of one frame.
type CodedFrame struct {
	Graph     string // "intra", "inter", "reset"
	QP        int    // 0..63
	Threshold int    // 0..64
	Lanes     int    // a power of two, 1..1024
	Payload   []byte
}

// Decoded is one frame of a FrameDecoder.
type Decoded struct {
	Picture *yuv.Planes // W x H
	Hash    uint32      // of Picture; 0 with NoHash
	Tail    uint16      // what the payload carries of the hash its encoder had
	Vectors []int16     // (vy,vx) [H/16][W/16] of the padded picture; nil where the graph has none
}

// A PayloadError reports a payload that no encoder makes.
type PayloadError struct{ Err error }

func (e *PayloadError) Error() string { return "payload: " + e.Err.Error() }
func (e *PayloadError) Unwrap() error { return e.Err }
