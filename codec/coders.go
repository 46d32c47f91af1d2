package codec

import (
	"fmt"

	"github.com/nvcodec/nvcodec/inference"
)

// Frames in flight by default. One keeps a processor busy; of a second one the encoder searches motion meanwhile.
const (
	plainInFlight  = 1
	searchInFlight = 2
)

// inFlight resolves the number of frames in flight, plain being the default of a backend that computes networks only.
func inFlight(asked int, b inference.Backend, plain int) (int, error) {
	_, whole := b.(inference.CodingBackend)
	switch {
	case asked < 0 || asked > inference.MaxInFlight:
		return 0, fmt.Errorf("codec: InFlight %d, outside 0..%d", asked, inference.MaxInFlight)
	case asked > 0:
		return asked, nil
	case whole:
		return inference.DeviceInFlight, nil
	}
	return plain, nil
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
