//go:build cuda

package cuda

import "fmt"

// A call is one launch before a machine has prepared it.
type call struct {
	kernel  string
	grid    int
	args    []uint64
	threads int // of a block; 0: 256
	shared  int // bytes of dynamic shared memory that a block has

	stream int // of two: a frame's launches go to both where they can
	after  int // number, from 1, of the call in the other stream that must have run; 0 none

	early bool // may begin while the call before it in its stream ends, if the kernel can wait for it itself
}

// block returns how many threads a block has.
func (c *call) block() int {
	if c.threads == 0 {
		return threads
	}
	return c.threads
}

// runs names the variant of a kernel for these channel counts and returns how many values a thread has: 8 where all
// are multiples of 8, else 1.
func runs(kernel string, channels ...int) (string, int64) {
	for _, c := range channels {
		if c%8 != 0 {
			return kernel + "_1", 1
		}
	}
	return kernel + "_8", 8
}

// arg turns pointers and integers into the eight bytes that launches pass.
func arg(values ...any) []uint64 {
	out := make([]uint64, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case pointer:
			out[i] = uint64(v)
		case int:
			out[i] = uint64(int64(v))
		case int64:
			out[i] = uint64(v)
		default:
			panic(fmt.Sprintf("cuda: argument of type %T", v))
		}
	}
	return out
}

// The calls of the operators; n is a number of positions, and null pointers are 0.

func callLin(dst, src, res pointer, w, bias, mul pointer, n int64, in, out, shift, processors int) call {
	grid, each := share(n, (out+blockOutputs-1)/blockOutputs, processors)
	name, _ := runs("lin", in, out)
	return call{kernel: name, grid: grid, args: arg(dst, src, res, w, bias, mul, n, in, out, shift, each)}
}

// callLinActSum4 computes out channels from a lin to 4*out.
func callLinActSum4(dst, src pointer, w, bias, mul pointer, n int64, in, out, shift, f, processors int) call {
	grid, each := share(n, (out+15)/16, processors)
	name, _ := runs("lin_actsum4", in, out)
	return call{kernel: name, grid: grid, args: arg(dst, src, w, bias, mul, n, in, out, shift, f, each)}
}

// share returns the grid of a lin with so many blocks of output channels, and how many of them a block of threads
// computes one after the other: as many as leave every multiprocessor two blocks of threads.
func share(n int64, channelBlocks, processors int) (grid, each int) {
	rows := int((n + 127) / 128)
	groups := min(channelBlocks, max(1, (2*processors+rows-1)/rows))
	each = (channelBlocks + groups - 1) / groups
	return rows * ((channelBlocks + each - 1) / each), each
}

func callLin16(dst, src, res pointer, w, bias, mul pointer, n int64, in, out, shift int) call {
	return call{kernel: "lin16", grid: blocks(n * int64(out)), args: arg(dst, src, res, w, bias, mul, n, in, out, shift)}
}

// callDWAct computes tiles of 8 rows and 32 channels, of 16 columns or, so that every multiprocessor has some, of 8.
// callDWAct has no activation where f is 0.
func callDWAct(dst, src pointer, w, bias, mul pointer, h, width, c, f, shift, processors int) call {
	args := arg(dst, src, w, bias, mul, h, width, c, f, shift)
	name := "dwact"
	if f == 0 {
		name = "dw"
	}
	if c%8 != 0 {
		return call{kernel: name + "_1", grid: blocks(int64(h) * int64(width) * int64(c)), args: args}
	}
	tiles := func(columns int) int { return (h + 7) / 8 * ((width + columns - 1) / columns) * ((c + 31) / 32) }
	if n := tiles(16); n >= 3*processors {
		return call{kernel: name + "_large", grid: n, args: args}
	}
	return call{kernel: name + "_small", grid: tiles(8), args: args}
}

func callActSum4(dst, src pointer, n int64, c, f int) call {
	name, v := runs("actsum4", c)
	return call{kernel: name, grid: blocks(n * int64(c) / v), args: arg(dst, src, n, c, f)}
}

// callCompensate has a thread for 4x4 samples.
func callCompensate(dst, ref, vectors pointer, w, h int) call {
	return call{kernel: "compensate", grid: blocks(int64(w) * int64(h) * 3 / 32), args: arg(dst, ref, vectors, w, h)}
}

// callUnpack adds head to pred, or to a picture through a table of pixels, or to nothing.
func callUnpack(picture, head, pred, from, table pointer, w, h, f int) call {
	return call{kernel: "unpack", grid: blocks(int64(w/8) * int64(h/8) * 12), args: arg(picture, head, pred, from, table, w, h, f)}
}
