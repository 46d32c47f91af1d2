"""Adam over one flat vector of all parameters, their running average, and the files that a run resumes from. Every method but
step is called outside CUDA graphs; step reads what changes from tensors, so that a graph holds it."""
import json
import os

import torch


def write(path, x):
    torch.save(x, path + ".part")
    os.replace(path + ".part", path)  # a copy taken at any time is whole


class Optimiser:
    CLIP, B1, B2, EPS = 0.3, 0.9, 0.995, 1e-7
    MOMENTS = (("w", torch.float16), ("m1", torch.bfloat16), ("m2", torch.bfloat16))

    def __init__(self, both, dev, decay, average):
        self.names, params = zip(*both.named_parameters())
        n = sum(p.numel() for p in params)
        self.w, self.grad = torch.empty(n, device=dev), torch.zeros(n, device=dev)
        self.shrink, self.shapes, o = torch.zeros(n, device=dev), [], 0
        for name, p in zip(self.names, params):
            m = p.numel()
            self.w[o:o + m].copy_(p.data.flatten())
            self.shrink[o:o + m] = decay if name.endswith(".weight") else 0
            p.data, p.grad = self.w[o:o + m].view(p.shape), self.grad[o:o + m].view(p.shape)
            self.shapes.append((o, m, p.shape))
            o += m
        self.m1, self.m2, self.ema = torch.zeros_like(self.w), torch.zeros_like(self.w), self.w.clone()
        self.rate, self.c1, self.c2, self.keep = [torch.zeros((), device=dev) for _ in range(4)]
        self.average, self.steps = average, 0
        self.set(0)

    def set(self, rate):
        """for the next step; rate 0 changes nothing but the moments"""
        k = max(1, self.steps)
        self.rate.fill_(rate), self.c1.fill_(1 - self.B1 ** k), self.c2.fill_(1 - self.B2 ** k)
        self.keep.fill_(min(1 - 1 / self.average, 1 - 1 / (1 + self.steps / 5)) if rate else 1.0)

    def step(self, world):
        """-> norm of the gradient. A threshold that skipped large gradients froze training: they are scaled down instead"""
        if world > 1:
            torch.distributed.all_reduce(self.grad)
            self.grad.div_(world)
        norm = self.grad.norm()
        scale = torch.where(torch.isfinite(norm), torch.clamp(self.CLIP / (norm + 1e-6), max=1.0), torch.zeros_like(norm))
        torch.nan_to_num(self.grad, 0.0, 0.0, 0.0, out=self.grad)
        self.grad.mul_(scale)
        self.m1.lerp_(self.grad, 1 - self.B1)
        self.m2.mul_(self.B2).addcmul_(self.grad, self.grad, value=1 - self.B2)
        update = (self.m1 / self.c1) / ((self.m2 / self.c2).sqrt_().add_(self.EPS))
        self.w.sub_(update.add_(self.w * self.shrink).mul_(self.rate))
        self.ema.add_((self.w - self.ema) * (1 - self.keep))
        return norm

    def snapshot(self):
        return [x.clone() for x in (self.w, self.ema, self.m1, self.m2)]

    def restore(self, snapshot):
        for x, y in zip((self.w, self.ema, self.m1, self.m2), snapshot):
            x.copy_(y)

    def averaged(self, f):
        """f() with the averaged weights in place"""
        own = self.w.clone()
        self.w.copy_(self.ema)
        try:
            return f()
        finally:
            self.w.copy_(own)

    def checkpoint(self):
        return {name: self.ema[o:o + m].view(s).half().cpu() for name, (o, m, s) in zip(self.names, self.shapes)}

    def save(self, prefix, **position):
        """F16 and BF16: each file stays small enough to be carried about; Adam forgives the rounding"""
        for name, x in zip(self.MOMENTS, (self.w, self.m1, self.m2)):
            write(f"{prefix}-{name[0]}.pt", x.to(name[1]).cpu())
        with open(prefix + ".json.part", "w") as f:
            json.dump({"steps": self.steps, **position}, f)
        os.replace(prefix + ".json.part", prefix + ".json")

    def load(self, prefix):
        for (name, _), x in zip(self.MOMENTS, (self.w, self.m1, self.m2)):
            x.copy_(torch.load(f"{prefix}-{name}.pt", map_location=x.device).float())
        position = json.load(open(prefix + ".json"))
        self.steps = position["steps"]
        return position
