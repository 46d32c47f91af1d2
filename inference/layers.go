package inference

import (
	"sync"

	"github.com/nvcodec/nvcodec/inference/kernel"
)

// layers keeps the weights that a kernel set has repacked, so that the sessions of one model share them.
type layers struct {
	mu  sync.Mutex
	lin map[layerKey]kernel.LinFunc
	dw  map[layerKey]kernel.DWActFunc

	proved bool
}

type layerKey struct {
	set, w, bias, mul string
	shift, f          int
}

func (m *Model) lin(set *kernel.Set, n *Node) kernel.LinFunc {
	key := layerKey{set.Name, n.Tensors["w"], n.Tensors["bias"], n.Tensors["mul"], n.Ints["shift"], 0}
	l := &m.prepared
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.lin[key]; f != nil {
		return f
	}
	if l.lin == nil {
		l.lin = map[layerKey]kernel.LinFunc{}
	}
	w := m.Tensors[key.w]
	f := set.Lin(&kernel.Lin{
		In: w.Shape[1], Out: w.Shape[0], W: w.I8, W16: w.I16,
		Bias: m.Tensors[key.bias].I32, Mul: m.Tensors[key.mul].I32, Shift: uint(key.shift),
	})
	l.lin[key] = f
	return f
}

func (m *Model) dwact(set *kernel.Set, n *Node, f int) kernel.DWActFunc {
	key := layerKey{set.Name, n.Tensors["w"], n.Tensors["bias"], n.Tensors["mul"], n.Ints["shift"], f}
	l := &m.prepared
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.dw[key]; f != nil {
		return f
	}
	if l.dw == nil {
		l.dw = map[layerKey]kernel.DWActFunc{}
	}
	w := m.Tensors[key.w]
	fn := set.DWAct(&kernel.DWAct{
		C: w.Shape[1], F: uint(f), W: w.I8, Bias: m.Tensors[key.bias].I32, Mul: m.Tensors[key.mul].I32, Shift: uint(key.shift),
	})
	l.dw[key] = fn
	return fn
}
