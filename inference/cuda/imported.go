//go:build cuda

package cuda

import "github.com/nvcodec/nvcodec/inference"

// The operators that only imported networks have.

func callLookup(dst, src, table pointer, n int64, c int) call {
	name, v := runs("lookup", c)
	units := n * int64(c) / v
	return call{kernel: name, grid: blocks(units), args: arg(dst, src, table, units)}
}

func callSum2(dst, src pointer, n int64, c int) call {
	name, v := runs("sum2", c)
	return call{kernel: name, grid: blocks(n * int64(c) / v), args: arg(dst, src, n, c)}
}

func callAdd(dst, a, b pointer, n int64, c int) call {
	name, v := runs("add", c)
	units := n * int64(c) / v
	return call{kernel: name, grid: blocks(units), args: arg(dst, a, b, units)}
}

func callPackFull(dst, picture, table pointer, w, h int) call {
	return call{kernel: "pack_full", grid: blocks(int64(w/8) * int64(h/8) * 24), args: arg(dst, picture, table, w, h)}
}

func callUnpackFull(picture, head, pred pointer, w, h, f int) call {
	return call{kernel: "unpack_full", grid: blocks(int64(w/8) * int64(h/8) * 16), args: arg(picture, head, pred, w, h, f)}
}

// callConv3 takes the input's h x w.
func callConv3(dst, src, w, bias, mul pointer, h, width, in, out, r, shift int, wide bool) call {
	name := "conv3"
	if wide {
		name = "conv316"
	}
	return call{kernel: name, grid: blocks(int64(h/r) * int64(width/r) * int64(out)), args: arg(dst, src, w, bias, mul, h, width, in, out, r, shift)}
}

// full reports whether a packed picture's chroma has luma's resolution.
func full(n *inference.Node) bool { return n.C == 192 }

// compileImported returns the calls that compute v, or false for an operator of the shipped networks.
func (s *session) compileImported(v *value, parity int) ([]call, bool) {
	n := v.node
	at := func(i int) pointer { return s.address(v.in[i], parity) }
	tensor := func(role string) pointer { return s.weights.pointer(n.Tensors[role]) }
	dst := s.address(v, parity)
	var c call
	switch n.Op {
	case "lookup":
		c = callLookup(dst, at(0), tensor("table"), v.positions(), n.C)
	case "sum2":
		c = callSum2(dst, at(0), v.positions(), n.C)
	case "add":
		c = callAdd(dst, at(0), at(1), v.positions(), n.C)
	case "dw":
		c = callDWAct(dst, at(0), tensor("w"), tensor("bias"), tensor("mul"), v.h, v.w, n.C, 0, n.Ints["shift"], s.m.processors())
	case "conv3":
		wide := s.weights.model.Tensors[n.Tensors["w"]].Type == "I16"
		c = callConv3(dst, at(0), tensor("w"), tensor("bias"), tensor("mul"), v.in[0].h, v.in[0].w, v.in[0].node.C, n.C, n.Ints["r"], n.Ints["shift"], wide)
	case "pack":
		if !full(n) {
			return nil, false
		}
		c = callPackFull(dst, at(0), tensor("table"), s.size.W, s.size.H)
	case "picture":
		if !full(v.in[0].node) {
			return nil, false
		}
		var pred pointer
		if len(v.in) == 2 {
			pred = at(1)
		}
		c = callUnpackFull(dst, at(0), pred, s.size.W, s.size.H, v.in[0].node.F)
	default:
		return nil, false
	}
	return []call{c}, true
}
