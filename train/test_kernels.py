"""The fused kernels, on a GPU or else interpreted, against the plain path: values and gradients, in floats and in fixed point."""
import unittest

import torch
import torch.nn.functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    import interpreted  # noqa: F401  kernels.py then imports it as triton
import kernels
import model
import motion
from fixed import _Fix
from motion import warp8

torch.backends.cudnn.allow_tf32 = False


def act(x):
    return x * torch.clamp(x + 0.5, 0.0, 1.0)


def point(f):
    """-> the plain rounding to f fractional bits, and its q"""
    q = None if f is None else 2.0 ** f
    return (lambda x: x if q is None else _Fix.apply(x, q)), q


def grid(*shape, f, spread=1.0):
    """numbers with f fractional bits: their sums of products are exact, so that both sides round the same. None lies on a kink of act,
    where any slope between two is right"""
    x = torch.round(torch.randn(*shape) * spread * 2 ** f) / 2 ** f
    return torch.where(x.abs() == 0.5, x + 2.0 ** -f, x)


def plain_dw(x, w, b, before, after):
    c = x.shape[-1]
    return after(F.conv2d(before(act(x)).permute(0, 3, 1, 2), w.t().reshape(c, 1, 3, 3), b, padding=1, groups=c).permute(0, 2, 3, 1))


def plain_sum(x, p):
    return p(sum(p(act(x)).chunk(4, -1)))


class Kernels(unittest.TestCase):
    def same(self, fused, plain, *inputs):
        results = []
        for f in (fused, plain):
            own = [x.to(DEVICE, copy=True).requires_grad_() for x in inputs]
            y = f(*own)
            g = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(DEVICE)
            y.backward(g)
            results.append((y.detach(), *(x.grad for x in own)))
        for a, b in zip(*results):
            self.assertLess((a - b).abs().max().item(), 2e-5 * (1 + b.abs().max().item()))
        return results[0][0]

    def test_fix(self):
        x = torch.randn(3, 700) * 3
        y = self.same(lambda x: kernels.fix(x, 2.0 ** 13), point(13)[0], x)  # 13 bits: ±4
        self.assertTrue((y == 32767 / 2 ** 13).any() and (y == -4).any(), "nothing saturated")
        self.assertEqual(kernels.fix(torch.tensor([0.5, -0.5, 1.5, -1.5], device=DEVICE), 1.0).tolist(), [1, 0, 2, -1])

    def test_depthwise(self):
        torch.manual_seed(2)
        for (b, h, w, c), fi, fo in (((2, 3, 5, 8), None, None), ((2, 3, 5, 8), 8, 13), ((1, 2, 35, 40), 9, 14)):
            with self.subTest(shape=(b, h, w, c), fi=fi):
                (before, qi), (after, qo) = point(fi), point(fo)
                x, wt, bias = grid(b, h, w, c, f=fi or 8), grid(9, c, f=4), grid(c, f=12)
                self.same(lambda x, w, b: kernels.dw_act(x, w, b, qi, qo), lambda x, w, b: plain_dw(x, w, b, before, after), x, wt, bias)

    def test_sum(self):
        torch.manual_seed(3)
        for n, c, f in ((5, 12, None), (5, 12, 13), (300, 24, 9)):
            with self.subTest(n=n, c=c, f=f):
                p, q = point(f)
                self.same(lambda x: kernels.act_sum4(x, q), lambda x: plain_sum(x, p), grid(1, 1, n, 4 * c, f=f or 8, spread=2.0))

    def test_warp(self):
        torch.manual_seed(4)
        for (b, h, w, c), align, f in (((2, 4, 6, 5), 2, None), ((2, 4, 6, 70), 4, 11), ((2, 4, 6, 5), 1, None), ((1, 6, 10, 8), 8, 9), ((1, 6, 10, 8), 4, 4), ((1, 6, 10, 8), 32, 12), ((1, 6, 10, 8), 32, None)):
            with self.subTest(shape=(b, h, w, c), align=align):
                mv, q = torch.randint(-99, 100, (b, h // 2, w // 2, 2), dtype=torch.int32), f and 2.0 ** f
                mv[0, 0, 0], mv[-1, -1, -1], mv[0, -1, 0] = torch.tensor([2047, -2047]), torch.tensor([-2047, 2047]), 0
                for mv in (mv.to(DEVICE), mv.long().to(DEVICE)):
                    self.same(lambda x: kernels.warp(x, mv, align, q), lambda x: warp8(x, mv, align, q), grid(b, h, w, c, f=f or 8, spread=2.0 if f else 1.0).clamp(-8, 7.75))

    def test_block_differences(self):
        g = torch.Generator().manual_seed(6)
        x, cur = [torch.randint(0, 256, (2, 32, 48), generator=g).float().to(DEVICE) for _ in range(2)]
        mv = torch.randint(-90, 91, (2, 2, 3, 2), generator=g).to(DEVICE)
        mv[0, 0, 0], mv[0, 0, 1] = 0, -8
        self.assertTrue(torch.equal(motion.sad(cur, x, mv), motion.block_sad(cur, motion.predict_ref(x, mv))))

    def test_refined(self):
        g = torch.Generator().manual_seed(7)
        ref = torch.randint(0, 256, (2, 32, 32), generator=g).float()
        ref = torch.round(F.avg_pool2d(F.pad(ref[:, None], (2, 2, 2, 2), mode="replicate"), 5, 1)[:, 0]).to(DEVICE)
        cur, lam = torch.roll(ref, (1, -2), (1, 2)), torch.tensor([3.0, 20.0], device=DEVICE)[:, None, None]
        mv = torch.randint(-12, 13, (2, 2, 2, 2), generator=g).to(DEVICE)
        with torch.no_grad():
            fused, plain = motion.refined(cur, ref, mv, lam.flatten(), (4, 1), 1), motion.refine(cur.cpu(), ref.cpu(), mv.cpu(), lam.cpu(), (4, 1))
        self.assertTrue(torch.equal(fused.cpu(), plain))
        self.assertFalse(torch.equal(fused, mv))

    def test_clip(self):
        x = torch.tensor([-3.0, -2.0, -1.0, 0.5, 1.0, 1.5, 9.0]).repeat(200)
        self.same(lambda x: Clip.apply(x), lambda x: model._Clip.apply(x.cpu(), -2.0, 1.0).to(x.device), x)


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.clamp(x, -2.0, 1.0)

    @staticmethod
    def backward(ctx, g):
        return kernels.clip_backward(ctx.saved_tensors[0], g, -2.0, 1.0)


if __name__ == "__main__":
    unittest.main()
