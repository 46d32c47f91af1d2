package inference

import (
	"github.com/nvcodec/nvcodec/inference/kernel"
	"github.com/nvcodec/nvcodec/yuv"
)

// An operand finds a value's memory when a tile runs: state buffers change places after every frame.
type operand struct {
	buf     *[]int16 // the whole tensor; nil for scratch
	scratch int      // where the value starts in a thread's scratch
	c       int
}

func (o operand) of(t *tile) []int16 {
	if o.buf == nil {
		return t.scratch[o.scratch:][:(t.hi-t.lo)*o.c]
	}
	return (*o.buf)[t.lo*o.c : t.hi*o.c]
}

// compile returns the function that computes v for one tile, or nil when there is nothing to compute.
func (s *session) compile(p *program, v *value) func(*tile) {
	n, dst := v.node, s.operand(p, v)
	var in []operand
	for _, x := range v.in {
		in = append(in, s.operand(p, x))
	}
	tensor := func(role string) *Tensor { return s.model.Tensors[n.Tensors[role]] }
	switch n.Op {
	case "compensate":
		return s.compensate(s.moved[v.picture], s.picture(v.in[0]))
	case "pack":
		return s.pack(dst, s.picture(v.in[0]), tensor("table").I16)
	case "picture":
		return s.unpack(in, uint(v.in[0].node.F))
	case "conv3":
		apply := conv3(n, v.in[0].node.C, tensor).Apply
		return func(t *tile) { apply(*dst.buf, *in[0].buf, v.in[0].h, v.in[0].w, t.lo, t.hi) }
	case "dw":
		apply := dw(n, tensor).Apply
		return func(t *tile) { apply(*dst.buf, *in[0].buf, v.h, v.w, t.lo, t.hi) }
	case "lookup":
		table := tensor("table").I16
		return func(t *tile) { kernel.Lookup(dst.of(t), in[0].of(t), table) }
	case "sum2":
		return func(t *tile) { kernel.Sum2(dst.of(t), in[0].of(t), n.C) }
	case "add":
		return func(t *tile) { kernel.Add(dst.of(t), in[0].of(t), in[1].of(t)) }
	case "dwact":
		apply := s.model.dwact(&s.set, n, v.in[0].node.F)
		return func(t *tile) { apply(*dst.buf, *in[0].buf, v.h, v.w, t.lo, t.hi) }
	case "lin":
		apply := s.model.lin(&s.set, n)
		if len(in) == 1 {
			return func(t *tile) { apply(dst.of(t), in[0].of(t), nil) }
		}
		return func(t *tile) { apply(dst.of(t), in[0].of(t), in[1].of(t)) }
	case "actsum4":
		return func(t *tile) { s.set.ActSum4(dst.of(t), in[0].of(t), n.C, uint(n.F)) }
	case "scale":
		table, shift := tensor("table").I32, uint(n.Ints["shift"])
		return func(t *tile) {
			s.set.Scale(dst.of(t), in[0].of(t), table[s.frame.QP*n.C:][:n.C], shift)
		}
	case "requant":
		shift := v.in[0].node.F - n.F
		return func(t *tile) { s.set.Requant(dst.of(t), in[0].of(t), shift) }
	case "clamp":
		lo, hi := int16(n.Ints["lo"]), int16(n.Ints["hi"])
		return func(t *tile) { s.set.Clamp(dst.of(t), in[0].of(t), lo, hi) }
	case "concat":
		return concat(dst, in)
	case "s2d":
		return s2d(dst, in[0], v.w, n.Ints["r"])
	case "d2s":
		return d2s(dst, in[0], v.w, n.Ints["r"])
	case "move":
		return s.move(dst, in[0], v.h, v.w)
	case "memory_out", "feature_out":
		if v.in[0].place == inState && v.in[0].state == v.state {
			return nil // computed in place
		}
		return func(t *tile) { copy(dst.of(t), in[0].of(t)) }
	case "code_z":
		return s.codeZ(p, v, dst, in, tensor("table").U8)
	case "index":
		f, index := uint(v.in[0].node.F), p.indices[v]
		return func(t *tile) {
			out := index[t.lo*n.C : t.hi*n.C]
			for i, x := range in[0].of(t) {
				out[i] = scaleIndex(x, f)
			}
		}
	case "code_y":
		return s.codeY(p, v, dst, in, tensor("rexp").I32)
	case "latent":
		return latents(dst, in, v.w, n.Ints["step"], uint(n.F))
	case "unstep":
		table, shift := tensor("exp").I32, uint(16+v.in[0].node.F-n.F)
		return func(t *tile) {
			out, q := dst.of(t), in[1].of(t)
			for i, x := range in[0].of(t) {
				out[i] = unstep(x, q[i], table, shift)
			}
		}
	}
	panic("inference: no code for operator " + n.Op) // Validate knows the same operators, by test
}

func concat(dst operand, in []operand) func(*tile) {
	return func(t *tile) {
		out, at := dst.of(t), 0
		for _, x := range in {
			src := x.of(t)
			for p := range t.hi - t.lo {
				copy(out[p*dst.c+at:][:x.c], src[p*x.c:][:x.c])
			}
			at += x.c
		}
	}
}

// s2d makes w positions a row from r x r positions each; r positions that lie side by side stay so.
func s2d(dst, src operand, w, r int) func(*tile) {
	run := r * src.c
	return func(t *tile) {
		out, x := dst.of(t), *src.buf
		for p := t.lo; p < t.hi; p++ {
			row, col := p/w, p%w
			for dy := range r {
				copy(out[:run], x[((row*r+dy)*w+col)*run:][:run])
				out = out[run:]
			}
		}
	}
}

func d2s(dst, src operand, w, r int) func(*tile) {
	return func(t *tile) {
		out, x := dst.of(t), *src.buf
		for p := t.lo; p < t.hi; p++ {
			row, col := p/w, p%w
			from := (row/r*(w/r) + col/r) * src.c
			copy(out[:dst.c], x[from+(row%r*r+col%r)*dst.c:][:dst.c])
			out = out[dst.c:]
		}
	}
}

// move reads position p at p + ((v + 16) >> 5), v the vector of the block of 2x2 positions that holds p.
func (s *session) move(dst, src operand, h, w int) func(*tile) {
	return func(t *tile) {
		out, x, v := dst.of(t), *src.buf, s.frame.Vectors
		for p := t.lo; p < t.hi; p++ {
			row, col := p/w, p%w
			b := 2 * (row/2*(w/2) + col/2)
			row = min(max(row+(int(v[b])+16)>>5, 0), h-1)
			col = min(max(col+(int(v[b+1])+16)>>5, 0), w-1)
			copy(out[:dst.c], x[(row*w+col)*dst.c:][:dst.c])
			out = out[dst.c:]
		}
	}
}

// codeZ computes z's symbols in the encoder; both sides need their tables.
func (s *session) codeZ(p *program, v *value, dst operand, in []operand, table []uint8) func(*tile) {
	c, tables := v.node.C, p.section(v).Tables
	return func(t *tile) {
		row := table[s.frame.QP*c:][:c]
		for i := t.lo * c; i < t.hi*c; i++ {
			tables[i] = 64 + row[i%c]
		}
		if !s.encode {
			return
		}
		f, k := uint(v.in[0].node.F), dst.of(t)
		for i, z := range in[0].of(t) {
			k[i] = symbolZ(z, f)
		}
	}
}

// codeY computes the symbols of one step in the encoder; both sides need their tables.
func (s *session) codeY(p *program, v *value, dst operand, in []operand, rexp []int32) func(*tile) {
	step, half, c := v.node.Ints["step"], v.node.C, 2*v.node.C
	index, tables := p.indices[v.in[len(v.in)-1]], p.section(v).Tables
	if !s.encode {
		return func(t *tile) {
			for pos := t.lo; pos < t.hi; pos++ {
				from, to := codedHalf(pos/v.w, pos%v.w, step, c)
				copy(tables[pos*half:][:half], index[pos*c+from:pos*c+to])
			}
		}
	}
	fy, fm := v.in[0].node.F, v.in[2].node.F
	shift := uint(16 + fy - fm)
	return func(t *tile) {
		y, q, mean, k := in[0].of(t), in[1].of(t), in[2].of(t), dst.of(t)
		for pos := t.lo; pos < t.hi; pos++ {
			from, to := codedHalf(pos/v.w, pos%v.w, step, c)
			tab := tables[pos*half:][:half]
			copy(tab, index[pos*c+from:pos*c+to])
			at := (pos-t.lo)*c + from
			out := k[(pos-t.lo)*half:][:half]
			for i := range out {
				out[i] = 0
				if int(tab[i]) >= s.frame.Threshold {
					out[i] = symbol(y[at+i], q[at+i], mean[at+i], rexp, shift, uint(fm))
				}
			}
		}
	}
}

// latents fills the coded half of each position from its symbols and the other half from the base, or with 0.
func latents(dst operand, in []operand, w, step int, fm uint) func(*tile) {
	return func(t *tile) {
		out, k, mean := dst.of(t), in[0].of(t), in[1].of(t)
		if len(in) == 3 {
			copy(out, in[2].of(t))
		} else {
			clear(out)
		}
		for pos := t.lo; pos < t.hi; pos++ {
			from, to := codedHalf(pos/w, pos%w, step, dst.c)
			at := (pos - t.lo) * dst.c
			for i := from; i < to; i++ {
				out[at+i] = latent(k[(pos-t.lo)*dst.c/2+i-from], mean[at+i], fm)
			}
		}
	}
}

// compensate works on rows of blocks: 16 rows of luma and 8 of each chroma plane.
func (s *session) compensate(dst *yuv.Planes, ref **yuv.Planes) func(*tile) {
	w, h := s.size.W, s.size.H
	return func(t *tile) {
		r, v := *ref, s.frame.Vectors
		s.set.Compensate(dst.Y, r.Y, w, h, t.lo*16, t.hi*16, v, w/16, true)
		s.set.Compensate(dst.U, r.U, w/2, h/2, t.lo*8, t.hi*8, v, w/16, false)
		s.set.Compensate(dst.V, r.V, w/2, h/2, t.lo*8, t.hi*8, v, w/16, false)
	}
}

func (s *session) pack(dst operand, src **yuv.Planes, table []int16) func(*tile) {
	return func(t *tile) {
		p := *src
		if dst.c == kernel.PackedFull {
			kernel.PackFull(*dst.buf, p.Y, p.U, p.V, s.size.W, s.size.H, t.lo, t.hi, table)
			return
		}
		s.set.Pack(*dst.buf, p.Y, p.U, p.V, s.size.W, s.size.H, t.lo, t.hi, table)
	}
}

func (s *session) unpack(in []operand, f uint) func(*tile) {
	return func(t *tile) {
		var pred []int16
		if len(in) == 2 {
			pred = *in[1].buf
		}
		p := s.next
		if in[0].c == kernel.PackedFull {
			kernel.UnpackFull(p.Y, p.U, p.V, *in[0].buf, pred, s.size.W, s.size.H, t.lo, t.hi, f)
			return
		}
		s.set.Unpack(p.Y, p.U, p.V, *in[0].buf, pred, s.size.W, s.size.H, t.lo, t.hi, f)
	}
}
