// Package codec turns pictures into a .nvc stream and back: docs/FORMAT.md in code. It works on planes in memory,
// builds without cgo, and decodes to the same bits on every machine.
//
// Encoder.Write and Decoder.Next read like the block diagram; the files below them follow the document's order: header,
// chunk, record (with the clock that foretells times), metadata, footer, then the parser that joins them. Scan lists a
// stream's frames without decoding them.
package codec

import "github.com/nvcodec/nvcodec/yuv"

// FrameInfo is what a stream says of a frame, and what the encoder knows of it besides.
type FrameInfo struct {
	Number    int64 // in the stream, from 0
	K         int64 // in its GOP: 0 is the intra frame
	Type      FrameType
	QP        int
	Threshold int // y symbols with a scale index below it are not coded
	Lanes     int // of the entropy coder
	PTS       int64

	Offset       int64 // of the record in the stream; the encoder's knows it only with low delay, else −1
	Bytes        int   // of the record, payload included; chunks and GOP headers come on top
	PayloadBytes int
	Hash         uint32 // PictureHash of the decoded picture; Scan, which decodes none, leaves it 0
	Whole        bool   // the CRC of the frame's chunk was checked: false only at the end of a cut stream

	// Decoded is the encoder's own reconstruction, equal to what a decoder returns; nil elsewhere. It is valid until
	// the encoder's next call.
	Decoded *yuv.Planes
}
