package convert

import (
	"runtime"
	"sync"

	"github.com/nvcodec/nvcodec/yuv"
)

// A number is what an evaluation computes in: float32 for the float network, as it was trained; float64 for the
// integer network, whose sums it holds exactly (they stay below 2^53).
type number interface{ float32 | float64 }

// A Value is the result of one node. Data holds features [H][W][C] and, for a picture node of the float network,
// the packed picture before rounding.
type Value[T number] struct {
	H, W, C int
	Data    []T
	Picture *yuv.Planes
	Field   []int16 // (vy, vx) [H][W][2]
	Index   []uint8 // [H][W][C]
	Symbols []int16 // [H][W][C]
}

func feature[T number](h, w, c int) *Value[T] {
	return &Value[T]{H: h, W: w, C: c, Data: make([]T, h*w*c)}
}

// parallel splits 0..n among the cores; f gets ranges of at least grain.
func parallel(n, grain int, f func(lo, hi int)) {
	parts := min(runtime.GOMAXPROCS(0), n/max(1, grain))
	if parts <= 1 {
		f(0, n)
		return
	}
	var wg sync.WaitGroup
	for k := range parts {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f(n*k/parts, n*(k+1)/parts)
		}()
	}
	wg.Wait()
}

// each applies f to every element of x, in parallel.
func each[T number](x *Value[T], f func(v T) T) *Value[T] {
	y := feature[T](x.H, x.W, x.C)
	parallel(len(x.Data), 4096, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y.Data[i] = f(x.Data[i])
		}
	})
	return y
}

func concatenate[T number](xs []*Value[T]) *Value[T] {
	c := 0
	for _, x := range xs {
		c += x.C
	}
	y := feature[T](xs[0].H, xs[0].W, c)
	at := 0
	for _, x := range xs {
		for p := range x.H * x.W {
			copy(y.Data[p*c+at:], x.Data[p*x.C:(p+1)*x.C])
		}
		at += x.C
	}
	return y
}

// spaceToDepth orders channels (dy*r+dx)*C + c.
func spaceToDepth[T number](x *Value[T], r int) *Value[T] {
	y := feature[T](x.H/r, x.W/r, x.C*r*r)
	for i := range y.H {
		for j := range y.W {
			for k := range r * r {
				src := ((i*r+k/r)*x.W + j*r + k%r) * x.C
				copy(y.Data[(i*y.W+j)*y.C+k*x.C:], x.Data[src:src+x.C])
			}
		}
	}
	return y
}

func depthToSpace[T number](x *Value[T], r int) *Value[T] {
	c := x.C / (r * r)
	y := feature[T](x.H*r, x.W*r, c)
	for i := range x.H {
		for j := range x.W {
			for k := range r * r {
				src := (i*x.W+j)*x.C + k*c
				copy(y.Data[((i*r+k/r)*y.W+j*r+k%r)*c:], x.Data[src:src+c])
			}
		}
	}
	return y
}

// move shifts features by whole positions: the block of vectors that holds a position covers 2x2 positions.
func move[T number](x, mv *Value[T]) *Value[T] {
	y := feature[T](x.H, x.W, x.C)
	for i := range x.H {
		for j := range x.W {
			v := mv.Field[((i/2)*mv.W+j/2)*2:]
			a := min(max(i+(int(v[0])+16)>>5, 0), x.H-1)
			b := min(max(j+(int(v[1])+16)>>5, 0), x.W-1)
			copy(y.Data[(i*x.W+j)*x.C:(i*x.W+j+1)*x.C], x.Data[(a*x.W+b)*x.C:])
		}
	}
	return y
}

// codes tells whether step s of the checkerboard codes channel c of C at position (i, j).
func codes(s, i, j, c, C int) bool {
	return (c >= C/2) == ((i+j+s)%2 != 0)
}

// pad extends p by replication to multiples of 64, chroma as well.
func pad(p *yuv.Planes) *yuv.Planes {
	q := yuv.New((p.W+63)/64*64, (p.H+63)/64*64)
	q.Pad(p)
	return q
}

// unpackIndex calls f(plane, offset, channel) for the 96 samples of packed position (i, j): planes 0 Y, 1 U, 2 V.
func unpackIndex(p *yuv.Planes, i, j int, f func(b []byte, offset, c int)) {
	for k := range 64 {
		f(p.Y, (i*8+k/8)*p.StrideY+j*8+k%8, k)
	}
	for k := range 16 {
		f(p.U, (i*4+k/4)*p.StrideC+j*4+k%4, 64+k)
		f(p.V, (i*4+k/4)*p.StrideC+j*4+k%4, 80+k)
	}
}
