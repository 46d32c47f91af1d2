"""Layers and blocks with weights rounded once, on a GPU or else interpreted, against the plain path: values and gradients."""
import unittest

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    import interpreted  # noqa: F401  kernels.py then imports it as triton
import fast
import latent
import model as M

torch.backends.cudnn.allow_tf32 = False


class Fast(unittest.TestCase):
    def same(self, module, run, *shape):
        M.QAT["on"] = True
        module.to(DEVICE)
        fast.prepare(module, M.Lin, M.DWAct, torch.float32)
        results = []
        for f in (run, module):
            torch.manual_seed(1)
            x = torch.randn(*shape).to(DEVICE).requires_grad_()
            for p in module.parameters():
                p.grad = torch.zeros_like(p)
            y = f(x)
            for k in (1, 2):  # gradients of two frames add up
                (y * torch.randn(y.shape).to(DEVICE)).sum().backward(retain_graph=True)
            results.append((y.detach(), x.grad, *(p.grad for p in module.parameters())))
        for a, b in zip(*results):
            self.assertLess((a - b).abs().max().item(), 2e-5 * (1 + b.abs().max().item()))
            self.assertGreater(b.abs().max().item(), 0)

    def test_linear(self):
        for i, o, shape in ((6, 10, (1, 3, 5, 6)), (130, 70, (1, 1, 3, 130))):
            with self.subTest(i=i, o=o):
                layer = M.Lin(i, o)
                self.same(layer, lambda x: fast.linear(x, layer), *shape)

    def test_positions_over_many_programs(self):
        layer, programs = M.Lin(5, 3), fast.PROGRAMS
        self.addCleanup(setattr, fast, "PROGRAMS", programs)
        fast.PROGRAMS = 4
        self.same(layer, lambda x: fast.linear(x, layer), 1, 16, 17, 5)

    def test_block(self):
        block = M.Block(8)
        for p in block.parameters():
            torch.nn.init.normal_(p, 0, 0.5)
        self.same(block, lambda x: fast.block(x, block), 2, 3, 5, 8)

    def test_rounded(self):
        torch.manual_seed(2)
        for channel in (0, 1):
            w = torch.randn(9, 12).to(DEVICE)
            w[0, 0] = 0
            want = M.int8(w, torch.zeros(1), 1 - channel, None)[0]
            self.assertTrue(torch.equal(fast.rounded(w, channel, torch.float32), want))

    def test_latent(self):
        for skip in (0, 20):
            with self.subTest(skip=skip):
                self.latent(skip)

    def latent(self, skip):
        torch.manual_seed(3)
        codec = M.Codec()
        codec.skip = skip
        codec.down = M.Lin(1, 1)  # says that weights are not ready
        codec.spatial = torch.nn.Sequential(M.Lin(24, 9), M.Lin(9, 6)).to(DEVICE)
        results = []
        y, params = torch.randn(3, 4, 6, 6) * 9, torch.randn(3, 4, 6, 18) * 3
        y[0, 0] = params[0, 0] = 0  # ties
        for f in (lambda y, p: latent.coded(y, p, codec.spatial, M.S_MIN, M.LOG_STEP, skip), codec.latent):
            own = [x.to(DEVICE, copy=True).requires_grad_() for x in (y, params)]
            codec.spatial.zero_grad()
            out, bits = f(*own)
            ((out * torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(DEVICE)).sum() + (bits * torch.tensor([1.0, 3.0, 0.2], device=DEVICE)).sum()).backward()
            results.append((out.detach(), bits.detach(), *(x.grad for x in own), *(p.grad.clone() for p in codec.spatial.parameters())))
        for a, b in zip(*results):
            self.assertLess((a - b).abs().max().item(), 1e-4 * (1 + b.abs().max().item()))
            self.assertGreater(b.abs().max().item(), 0)
        low = params[..., 6:12].clamp(-2, 5.875) * 8 + 16.5 < skip
        self.assertTrue(skip == 0 or 0.2 < low.float().mean() < 0.8, "not both kinds of symbols")
        self.assertTrue((params[..., :6].abs() > 3).any() and (params[..., 6:12] > 5.875).any(), "nothing clipped")

    def test_constants(self):
        """a network whose input needs no gradient still learns"""
        layer = M.Lin(4, 3).to(DEVICE)
        layer.weight.grad, layer.bias.grad = torch.zeros_like(layer.weight), torch.zeros_like(layer.bias)
        fast.prepare(layer, M.Lin, M.DWAct, torch.float32)
        fast.linear(torch.ones(1, 1, 2, 4).to(DEVICE), layer).sum().backward()
        self.assertEqual(layer.bias.grad.tolist(), [2, 2, 2])
        self.assertEqual(layer.weight.grad.tolist(), [[2] * 4] * 3)


if __name__ == "__main__":
    unittest.main()
