//go:build cuda

package cuda

// What latent coding launches; kernels/latent.cuh. c is the channels of y, of which a step codes half.

// A clamped tensor is read through a clamp.
type clamped struct {
	p      pointer
	lo, hi int
}

func (c clamped) limits() int64 { return int64(uint16(c.lo)) | int64(uint16(c.hi))<<16 }

func callCodeZ(k, tables, z, table, frame pointer, n int64, c, f int) call {
	return call{kernel: "code_z", grid: blocks(n * int64(c)), args: arg(k, tables, z, table, frame, n, c, f)}
}

// callYTables fills the tables of both steps; either may be null.
func callYTables(tables [2]pointer, v clamped, n int64, w, c, f int) call {
	name, run := runs("y_tables", c/2)
	return call{kernel: name, grid: blocks(n * int64(c) / run), args: arg(tables[0], tables[1], v.p, v.limits(), n, w, c, f)}
}

// A latentStep is one step's latent: what is read and, unless null, written.
type latentStep struct {
	yhat, out     pointer
	k             pointer // read, or written if there is y
	mean, base    pointer
	q             clamped
	exp           pointer
	step, fm      int
	outShift      int
	tables, y     pointer
	v             clamped
	rexp          pointer
	shift, fIndex int
}

func callLatent(l *latentStep, frame pointer, n int64, w, c int) call {
	name, run := runs("latent", c/2)
	return call{kernel: name, grid: blocks(n * int64(c) / run), args: arg(l.yhat, l.out, l.k, l.mean, l.base, l.q.p, l.q.limits(), l.exp, frame,
		n, w, c, l.step, l.fm, l.outShift, l.tables, l.y, l.v.p, l.v.limits(), l.rexp, l.shift, l.fIndex)}
}

func callUnstep(dst, yhat pointer, q clamped, exp pointer, values int64, shift int) call {
	return call{kernel: "unstep", grid: blocks(values), args: arg(dst, yhat, q.p, q.limits(), exp, values, shift)}
}
