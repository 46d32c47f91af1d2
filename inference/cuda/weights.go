//go:build cuda

package cuda

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/kernel"
)

// weights are a model's tensors in a device's memory, shared by its sessions there.
type weights struct {
	model *inference.Model
	refs  int
	fused map[string]*fusion // by graph
	base  pointer
	bytes int64
	at    map[string]int64 // offset of a tensor, or of a packed layer's parts
	sizes map[string]int   // bytes of each
}

// A layerNames names the parts of a packed layer in weights.at.
type layerNames struct{ w, bias, mul string }

func layerKey(n *inference.Node, sum4 bool) layerNames {
	key := n.Tensors["w"] + "|" + n.Tensors["bias"] + "|" + n.Tensors["mul"]
	if sum4 {
		key += "|sum4"
	}
	return layerNames{"w|" + key, "bias|" + key, "mul|" + key}
}

func (w *weights) pointer(name string) pointer {
	at, ok := w.at[name]
	if !ok {
		panic("cuda: no weights " + name) // compile asks for what collect has collected
	}
	return w.base + pointer(at)
}

// loadWeights proves the model and copies what its kernels read to the device.
func loadWeights(m machine, model *inference.Model) (*weights, error) {
	if _, err := model.Prove(); err != nil {
		return nil, err
	}
	w := &weights{model: model, fused: map[string]*fusion{}, at: map[string]int64{}, sizes: map[string]int{}}
	blobs := w.collect(m.family())
	var err error
	w.base, err = loaded(m, w.bytes, w.bytes, func(image []byte) {
		for name, blob := range blobs {
			copy(image[w.at[name]:], blob)
		}
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// collect gives everything an offset and returns it by name.
func (w *weights) collect(family int) map[string][]byte {
	blobs := map[string][]byte{}
	raw := func(name string) {
		if blobs[name] == nil {
			blobs[name] = bytesOf(w.model.Tensors[name])
		}
	}
	for name, g := range w.model.Graphs {
		f := fuse(g, w.model.Tensors, family)
		w.fused[name] = f
		for _, c := range f.chains {
			if key := c.key(); blobs[key] == nil {
				blobs[key] = packChain(c, w.model.Tensors)
			}
		}
		w.collectGroups(f.groups, blobs)
		for i := range g.Nodes {
			n := &g.Nodes[i]
			t := w.model.Tensors[n.Tensors["w"]]
			if grouped(f.groups, n) && n.Op != "scale" {
				continue
			}
			if n.Op != "lin" || t.Type != "I8" {
				for _, tensor := range n.Tensors {
					raw(tensor)
				}
				continue
			}
			sum4 := f.sums[n.Out]
			key := layerKey(n, sum4)
			if blobs[key.w] != nil {
				continue
			}
			p := packLin(&kernel.Lin{
				In: t.Shape[1], Out: t.Shape[0], W: t.I8,
				Bias: w.model.Tensors[n.Tensors["bias"]].I32, Mul: w.model.Tensors[n.Tensors["mul"]].I32,
			}, family, sum4)
			blobs[key.w], blobs[key.bias], blobs[key.mul] = p.w, bytes32(p.bias), bytes32(p.mul)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(blobs)) {
		w.at[name], w.sizes[name] = w.bytes, len(blobs[name])
		w.bytes += aligned(int64(len(blobs[name])))
	}
	w.bytes = max(w.bytes, alignment)
	return blobs
}

func bytes32(x []int32) []byte {
	var b []byte
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// bytesOf returns the elements of a tensor as a device holds them, little-endian.
func bytesOf(t *inference.Tensor) []byte {
	var b []byte
	switch t.Type {
	case "I8":
		for _, v := range t.I8 {
			b = append(b, byte(v))
		}
	case "U8":
		b = slices.Clone(t.U8)
	case "I16":
		for _, v := range t.I16 {
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		}
	case "U16":
		for _, v := range t.U16 {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
	case "I32":
		b = bytes32(t.I32)
	case "U32":
		for _, v := range t.U32 {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	return b
}
