package codec

import "io"

// ReadHeader returns what a stream says of itself in its first bytes, at most 255 of them. It may read more of r.
func ReadHeader(r io.Reader) (Header, error) {
	return readHeader(&window{r: r})
}
