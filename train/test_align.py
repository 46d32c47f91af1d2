"""Memory and feature moved between positions: what an integer operator would compute, and what becomes of the gradient."""
import unittest

import torch

import model as M
from motion import warp8


def integers(x, mv, align):
    """[h][w][C] int16, mv [h/2][w/2][2] -> the sum of four products, rounded half up and shifted, position by position"""
    h, w, _ = x.shape
    k = align.bit_length() - 1
    y = torch.empty_like(x)
    for row in range(h):
        for col in range(w):
            vy, vx = [(int(v) + (16 >> k)) >> (5 - k) for v in mv[row >> 1, col >> 1]]
            acc = (1 << 2 * k) >> 1
            for dy in (0, 1):
                for dx in (0, 1):
                    wy, wx = [(v & (align - 1)) if d else align - (v & (align - 1)) for v, d in ((vy, dy), (vx, dx))]
                    acc = acc + wy * wx * x[min(max(row + (vy >> k) + dy, 0), h - 1), min(max(col + (vx >> k) + dx, 0), w - 1)]
            y[row, col] = acc >> 2 * k
    return y


def vectors(h, w):
    """of any length and sign; at least one that stands still and one that leads far out"""
    mv = torch.randint(-90, 91, (2, h // 2, w // 2, 2))
    mv[0, 0, 0], mv[0, 0, 1], mv[1, -1, -1] = 0, torch.tensor([2047, -2047]), torch.tensor([-2047, 2047])
    return mv


class Align(unittest.TestCase):
    def test_integers(self):
        torch.manual_seed(1)
        for align in (1, 2, 4, 8, 16, 32):
            with self.subTest(align=align):
                x, mv = torch.randint(-32768, 32768, (2, 6, 8, 3)), vectors(6, 8)
                x[torch.rand(x.shape) < 0.3] = -32768
                got = warp8(x / 2.0 ** 11, mv, align, 2.0 ** 11)
                want = torch.stack([integers(*n, align) for n in zip(x, mv)])
                self.assertTrue(torch.equal(got * 2 ** 11, want.float()))

    def test_units(self):
        """a vector of quarter samples leads where it leads the picture: on a slope of 1 a position, by 1/32 each, as near as the steps come"""
        slope = torch.arange(20.0).view(1, 1, 20, 1).expand(1, 20, 20, 1)
        for align, v, want in ((1, 15, 0), (1, 16, 1), (2, 15, 0.5), (2, 8, 0.5), (2, 7, 0), (4, 15, 0.5), (4, 4, 0.25), (4, -13, -0.5), (4, -12, -0.25), (8, 15, 0.5), (8, -3, -0.125), (8, 2, 0.125), (8, 66, 2.125), (16, 3, 0.125), (32, 3, 3 / 32), (32, -33, -33 / 32)):
            for axis in (0, 1):
                mv = torch.zeros(1, 10, 10, 2, dtype=torch.int32)
                mv[..., axis] = v
                x = slope if axis else slope.transpose(1, 2)
                self.assertEqual((warp8(x, mv, align) - x)[0, 10, 10, 0].item(), want, (align, v))

    def test_gradient(self):
        """is the transpose; rounding lets it pass"""
        torch.manual_seed(2)
        for align in (1, 2, 4, 8, 16, 32):
            x, mv = torch.randint(-99, 100, (2, 6, 8, 3)).float().requires_grad_(), vectors(6, 8)
            g = torch.randint(-9, 10, x.shape).float()
            y = warp8(x, mv, align)
            y.backward(g)
            self.assertEqual((y * g).double().sum().item(), (x * x.grad).double().sum().item())
            own, x.grad = x.grad, None
            warp8(x, mv, align, 1.0).backward(g)
            self.assertTrue(torch.equal(own, x.grad))

    def test_network(self):
        """the option has no weights, moves memory and feature both, and changes nothing where vectors are whole"""
        torch.manual_seed(3)
        p, q = M.Inter(C=16), M.Inter(C=16, align=4)
        points = M.assign(torch.nn.ModuleDict({"i": M.Intra(C=16), "p": q}))
        q.load_state_dict(p.state_dict())
        mem, feat, pred = torch.randn(1, 8, 8, 16), torch.randn(1, 8, 8, 16), torch.randn(1, 8, 8, M.SRC)
        for v, one in ((32, True), (-64, True), (8, False)):
            mv = torch.full((1, 4, 4, 2), v)
            self.assertEqual(torch.equal(p.step(mem, feat, pred, mv), q.step(mem, feat, pred, mv)), one)
            for x in (mem, feat):
                self.assertEqual(torch.equal(p.moved(x, mv, M.FREE), q.moved(x, mv, M.FREE)), one)
        points.set({"p.memory": 3, "p.feature": 2, "p.fa_m.in": 10})
        seen = []
        q.fa_m.register_forward_pre_hook(lambda _, x: seen.append(x[0]))
        q.step(torch.round(mem * 8) / 8, torch.round(feat * 4) / 4, pred, mv)
        for part, unit in ((seen[0][..., :16], 8), (seen[0][..., 16:32], 4)):  # each rounded to its own fixed point
            self.assertTrue(torch.equal(part * unit, torch.round(part * unit)))


if __name__ == "__main__":
    unittest.main()
