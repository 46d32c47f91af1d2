package codec

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
)

// FuzzDecode: same bytes, same outcome on every kernel set, whatever they are; memory stays within what the picture's
// size and the bytes account for.
func FuzzDecode(f *testing.F) {
	o := manyTimes()
	frames := video(16, 16, 4, 0)
	stream, _, _ := encode(f, o, frames, formatOf(frames))
	o.LowDelay, o.IntraPeriod = true, 96
	delayed, _, _ := encode(f, o, frames, formatOf(frames))
	header := int(stream[5])
	for _, s := range [][]byte{stream, delayed} {
		f.Add(s[header:])
		f.Add(s[header : len(s)*2/3])
	}
	head := stream[:header:header]
	backends := inference.Backends()
	f.Fuzz(func(t *testing.T, body []byte) {
		bad := append(head, repair(body)...)
		var want string
		for i, b := range backends {
			do := decoderOptionsOf(o)
			do.Backend = b
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			frames, errs := decodeAll(bytes.NewReader(bad), do)
			runtime.ReadMemStats(&after)
			const session, frame = 32 << 20, 64 << 10
			if grown := after.TotalAlloc - before.TotalAlloc; grown > uint64(session+frame*len(frames)+64*len(bad)) {
				t.Fatalf("%s: %d bytes of memory for a stream of %d and %d frames", b.Kernels(), grown, len(bad), len(frames))
			}
			got := fmt.Sprint(len(frames))
			for _, f := range frames {
				got += fmt.Sprintf(" %d:%08x@%d", f.info.Number, f.info.Hash, f.pts)
			}
			for _, err := range errs {
				got += "\n" + err.Error()
			}
			if i == 0 {
				want = got
			} else if want = replaceBackend(want, b); got != want {
				t.Fatalf("%s: %s\n%s: %s", backends[0].Kernels(), want, b.Kernels(), got)
			}
		}
	})
}

// replaceBackend makes messages of the first backend those of b: a HashError names its backend.
func replaceBackend(s string, b inference.Backend) string {
	first := inference.Backends()[0]
	return string(bytes.ReplaceAll([]byte(s), []byte("on "+first.Name()+"/"+first.Kernels()+","), []byte("on "+b.Name()+"/"+b.Kernels()+",")))
}
