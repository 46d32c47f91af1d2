package codec

import (
	"fmt"

	"github.com/nvcodec/nvcodec/inference"
)

// inFlight resolves the number of frames in flight. One keeps a processor busy, since each frame waits for the one before.
func inFlight(asked int, b inference.Backend) (int, error) {
	_, whole := b.(inference.CodingBackend)
	switch {
	case asked < 0 || asked > inference.MaxInFlight:
		return 0, fmt.Errorf("codec: InFlight %d, outside 0..%d", asked, inference.MaxInFlight)
	case asked > 0:
		return asked, nil
	case whole:
		return inference.DeviceInFlight, nil
	}
	return 1, nil
}

func openEncoder(b inference.Backend, o *inference.CodingOptions) (inference.FrameEncoder, error) {
	if whole, ok := b.(inference.CodingBackend); ok {
		return whole.OpenEncoder(o)
	}
	return newPlainEncoder(b, o)
}

func openDecoder(b inference.Backend, o *inference.CodingOptions) (inference.FrameDecoder, error) {
	if whole, ok := b.(inference.CodingBackend); ok {
		return whole.OpenDecoder(o)
	}
	return newPlainDecoder(b, o)
}
