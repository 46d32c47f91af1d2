//go:build cuda

package cuda

// compile returns the calls that compute v in a frame of that parity: frames read state and picture number parity and
// leave the other ones.
func (s *session) compile(v *value, parity int) []call {
	n := v.node
	if v.by != nil {
		return nil
	}
	if c := v.chain; c != nil {
		if v != c.members[0] {
			return nil
		}
		return []call{s.compileChain(c, parity)}
	}
	at := func(x *value) pointer { return s.address(x, parity) }
	tensor := func(role string) pointer { return s.weights.pointer(n.Tensors[role]) }
	w, h, positions := s.size.W, s.size.H, v.positions()
	vectors := s.device + pointer(s.layout.vectors[parity])
	if v.place == nowhere {
		return nil
	}
	if v.sources != nil {
		return callsGather(at(v), vectors, s.frameParameters(), v.h, v.w, s.pieces(v, parity)...)
	}
	if v.group != nil {
		return []call{s.compileGroup(v, parity)}
	}
	if calls, ok := s.compileImported(v, parity); ok {
		return calls
	}
	switch n.Op {
	case "source", "reference", "vectors", "memory_in", "feature_in":
		return nil
	case "compensate":
		return []call{callCompensate(at(v), at(v.in[0]), at(v.in[1]), w, h)}
	case "picture":
		var pred, from, table pointer
		switch {
		case len(v.in) == 1:
		case v.in[1].place == nowhere: // a packed picture that is read through
			from, table = at(v.in[1].in[0]), s.weights.pointer(v.in[1].node.Tensors["table"])
		default:
			pred = at(v.in[1])
		}
		return []call{callUnpack(at(v), at(v.in[0]), pred, from, table, w, h, v.in[0].node.F)}
	case "lin":
		var res pointer
		if len(v.in) == 2 {
			res = at(v.in[1])
		}
		in := v.in[0].node.C
		if s.weights.model.Tensors[n.Tensors["w"]].Type == "I16" {
			return []call{callLin16(at(v), at(v.in[0]), res, tensor("w"), tensor("bias"), tensor("mul"), positions, in, n.C, n.Ints["shift"])}
		}
		key := layerKey(n, false)
		return []call{s.backend.units(callLin(at(v), at(v.in[0]), res, s.weights.pointer(key.w), s.weights.pointer(key.bias), s.weights.pointer(key.mul), positions, in, n.C, n.Ints["shift"], s.m.processors()))}
	case "actsum4":
		if !v.sum {
			return []call{callActSum4(at(v), at(v.in[0]), positions, n.C, n.F)}
		}
		lin := v.in[0]
		key := layerKey(lin.node, true)
		return []call{s.backend.units(callLinActSum4(at(v), at(lin.in[0]), s.weights.pointer(key.w), s.weights.pointer(key.bias), s.weights.pointer(key.mul),
			positions, lin.in[0].node.C, n.C, lin.node.Ints["shift"], n.F, s.m.processors()))}
	case "dwact":
		return []call{callDWAct(at(v), at(v.in[0]), tensor("w"), tensor("bias"), tensor("mul"), v.h, v.w, n.C, v.in[0].node.F, n.Ints["shift"], s.m.processors())}
	case "memory_out", "feature_out":
		if x := v.in[0]; x.place == v.place && x.kept {
			return nil // computed in place
		}
		return callsGather(at(v), vectors, s.frameParameters(), v.h, v.w, whole(at(v.in[0]), n.C))
	case "code_z":
		var z pointer
		f := 0
		if s.encode {
			z, f = at(v.in[0]), v.in[0].node.F
		}
		return []call{callCodeZ(at(v), s.tables(v), z, tensor("table"), s.frameParameters(), positions, n.C, f)}
	case "code_y", "latent", "unstep":
		return s.compileLatent(v, parity)
	}
	panic("cuda: no code for operator " + n.Op) // inference knows the same operators, by test
}
