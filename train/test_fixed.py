"""Training in fixed point against the integer network itself: a shipped model's float weights and fractional bits, real pictures, and what
both make of them. Multipliers and the tables of exp are rounded in one and not in the other, which few values show."""
import unittest

import numpy as np
import torch

import calibrate
import fixed
import integer
import model as M
import safetensors
from model import compensate, pack, to_planes

LITE = "../models/nvc1-lite.nvm", "../models/src/nvc1-lite.safetensors"


def network():
    tensors, meta = safetensors.read(LITE[1])
    both = torch.nn.ModuleDict({"i": M.Intra(C=int(meta["ci"])), "p": M.Inter(C=int(meta["cp"]))})
    both.load_state_dict({k: torch.from_numpy(v.astype(np.float32)) for k, v in tensors.items()})
    M.QAT["on"] = True
    return both, M.assign(both)


def fractions(model, points):
    """of each group, by a value that has it: the groups' names do not depend on the width"""
    by_value = model.fractions()
    named = {"i.fusion.in": "i.hq", "i.g": "i.g", "i.mean": "i.spatial", "i.spatial": "i.spatial.0", "p.mean": "p.spatial", "p.spatial": "p.spatial.0", "p.memory": "p.memory.in",
             "p.feature": "p.feature.in", "p.fusion": "p.hq", "i.fusion": "i.fusion.0", "i.hdec.2": "i.hdec", "p.hdec.2": "p.hdec", "i.henc.2": "i.henc", "p.henc.2": "p.henc"}
    return {g: by_value[named.get(g, g)] for g in points if g not in fixed.FIXED}


class FixedPoint(unittest.TestCase):
    @torch.no_grad()
    def test_frames(self):
        """an intra, a reset and an inter frame: each layer, given the integer network's own values, and the picture that the whole makes"""
        both, points = network()
        model = integer.Model(LITE[0])
        points.set(fractions(model, points))
        _, clip = calibrate.clips("../convert/frames.safetensors")[0]
        session, h, w = integer.Session(model), 64, 64
        vectors = np.full((4, 4, 2), (5, -9))
        for k, graph in enumerate(("intra", "reset", "inter")):
            y, uv = clip[k][0][:h, :w], clip[k][1][:, :h // 2, :w // 2]
            u = calibrate.padded(uv, h // 2, w // 2, "cpu")
            src, t = pack(calibrate.padded(y[None], h, w, "cpu"), u[..., :1].contiguous(), u[..., 1:].contiguous()), torch.tensor([(42 - 31.5) / 31.5])
            if k == 0:
                x, _ = both["i"](src, t)
            else:  # from the same reference, since one other sample would change all that follows
                mv = torch.from_numpy(vectors)[None]
                pred = compensate(tuple(torch.from_numpy(p).float() for p in (before[0][None], np.stack(before[1:]))), mv)
                mem = both["p"].start(pred) if k == 1 else both["p"].step(mem, feat, pred, mv)
                x, feat, _ = both["p"](src, pred, mem, t)
            _, before = session.encode(graph, 42, [y, *uv], vectors)
            difference = np.abs(to_planes(x)[0][0].numpy() - before[0])
            with self.subTest(frame=k):
                self.assertLess(difference.mean(), 0.6)  # now and then a symbol rounds the other way, which shows around it
                self.assertLess(difference.max(), 16)
            self.layers(both, model.graphs[graph], session)

    def layers(self, both, graph, session):
        def value(name):
            return torch.from_numpy(session.values[name] / 2.0 ** session.f[name]).float()[None]

        equal = of = 0
        for n in graph:
            if n.op not in ("lin", "dwact") or ".fusion.2." in n.tensors["w"]:
                continue
            layer = n.tensors["w"][:-2]
            got = both.get_submodule(layer)(value(n.inputs[0]))
            if n.inputs[1:]:
                got = both.get_submodule(layer.rsplit(".", 1)[0]).point(value(n.inputs[1]) + got)
            off = (got - value(n.out)).abs() * 2 ** n.f
            self.assertLessEqual(off.max().item(), 2, n.out)  # one unit each before and after the residual is added
            equal, of = equal + (off == 0).sum().item(), of + off.numel()
        self.assertGreater(equal / of, 0.995)

    def test_calibration(self):
        """what convert chose for the shipped model is what training would choose for its weights"""
        both, points = network()
        self.assertEqual(calibrate.calibrate(both, points, "../convert/frames.safetensors"), fractions(integer.Model(LITE[0]), points))

    def test_gradient(self):
        """vanishes at the rails only where it pushes outwards"""
        p = fixed.Point("test")
        p.q = 2.0 ** 10
        for x, g, want in ((40.0, -1.0, 0.0), (40.0, 1.0, 1.0), (-40.0, 1.0, 0.0), (-40.0, -1.0, -1.0), (3.3, -1.0, -1.0)):
            v = torch.tensor(x, requires_grad=True)
            p(v).backward(torch.tensor(g))
            self.assertEqual(v.grad.item(), want)


if __name__ == "__main__":
    unittest.main()
