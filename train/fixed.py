"""The integer network's fixed point in the float network: where a value is rounded to int16, with how many fractional bits, and
which values share them. Groups and rules are those of convert/nvc1.go and convert/calibrate.go; a checkpoint's metadata carries the
fractions to convert, which keeps them."""
import math

import torch

FIXED = {"pixels": 13, "step": 9, "symbols": 0}
TOP, BOTTOM, HEADROOM = 12, 5, 2.5


def rounded(x):
    return torch.floor(x + 0.5)


def ste(x):
    """rounds, halves up, as the integer network does"""
    return x + (rounded(x) - x).detach()


class _Fix(torch.autograd.Function):
    """x to the nearest 1/q within int16, halves up. The gradient vanishes at the rails where it pushes outwards."""

    @staticmethod
    def forward(ctx, x, q):
        y = torch.clamp(rounded(x * q), -32768, 32767) / q
        ctx.save_for_backward(y)
        ctx.q = q
        return y

    @staticmethod
    def backward(ctx, g):
        return rails(ctx.saved_tensors[0], g, ctx.q), None


def rails(y, g, q):
    """the gradient g of a value, given what it was rounded to"""
    return torch.where(((y <= -32768 / q) & (g > 0)) | ((y >= 32767 / q) & (g < 0)), torch.zeros_like(g), g)


class Point:
    """A group of values with common fractional bits. q = 2^F, or None: then values pass as they are, while watch is set, seen collects watch times the largest."""

    kernel = None  # the fused one, where there is a GPU

    def __init__(self, group):
        self.group, self.q, self.watch, self.seen = group, None, 0.0, 0.0

    def saw(self, x):
        if self.watch:
            self.seen = max(self.seen, self.watch * x.detach().abs().max().item())
        return x

    def __call__(self, x):
        self.saw(x)
        if self.q is None:
            return x
        if self.kernel and x.is_cuda:
            return self.kernel(x, self.q)
        return _Fix.apply(x, self.q)

    def wide(self, x):
        """the same without saturation: a latent in units of its step"""
        return x if self.q is None else x + (rounded(x * self.q) / self.q - x).detach()


class Points(dict):
    """The groups of both networks by name. assign gives every layer its own."""

    def __missing__(self, group):
        self[group] = Point(group)
        return self[group]

    def set(self, fractions):
        """fractions: group -> F; None: floats again"""
        for g, p in self.items():
            p.q = None if fractions is None else 2.0 ** FIXED.get(g, fractions.get(g, 0))

    def fractions(self):
        """the largest F of each group at which what was seen fits, as convert chooses it"""
        out = {}
        for g, p in self.items():
            if g in FIXED:
                continue
            f, least = TOP, BOTTOM
            if g.endswith(".mean"):
                f = FIXED["step"]
            elif g in ("p.memory", "p.feature"):
                least = 11
            while f > least and p.seen > math.ldexp(32767, -f):
                f -= 1
            out[g] = f
        return out


# a block's or layer's group, by the longest fitting name; what is not here is a group of its own
GROUP = {
    "i.e1": "i.e1", "i.e2": "i.e2", "i.fusion": "i.fusion", "i.up": "i.d1", "i.d1": "i.d1", "i.head": "pixels", "i.fusion.2": "i.mean", "i.spatial": "i.spatial", "i.spatial.2": "i.mean",
    "p.fa_i": "p.memory", "p.fa_m": "p.memory", "p.ext": "p.memory", "p.e1": "p.e1", "p.tprior": "p.tprior", "p.fusion": "p.fusion", "p.fusion.2": "p.mean", "p.spatial": "p.spatial",
    "p.spatial.2": "p.mean", "p.d1": "p.d1", "p.recon": "p.feature", "p.head": "pixels",
    **{f"{n}.{s}.{k}": f"{n}.{s}.{k}" for n in "ip" for s in ("henc", "hdec") for k in range(3)},
}
INSIDE = ("pw1", "dw", "ff1")  # of a block: groups of their own
# the group of what a layer reads, where that is not the block's own
READS = {
    "i.e1.adaptor": "pixels", "i.down": "i.e2", "i.fusion.0.adaptor": "i.fusion.in", "i.fusion.2": "i.fusion", "i.up": "i.yhat", "i.head": "i.g",
    "p.fa_i.0.adaptor": "pixels", "p.fa_m.0.adaptor": "p.fa_m.in", "p.e1.0.adaptor": "p.memory", "p.down": "p.f", "p.tprior.conv": "p.memory", "p.fusion.2": "p.fusion",
    "p.up": "p.yhat", "p.d1.0.adaptor": "p.up", "p.head": "p.feature",
    **{f"{n}.{layer}": group and f"{n}.{group}" for n in "ip" for layer, group in (
        ("henc.0.adaptor", "down"), ("henc.1.conv", "henc.0"), ("henc.2.conv", "henc.1"), ("hdec.0.conv", None), ("hdec.1.conv", "hdec.0"), ("hdec.2.adaptor", "hdec.1"),
        ("spatial.0.adaptor", "mean"), ("spatial.2", "spatial"))},
}
INNER = {"pw2": "dw", "ff2": "ff1", "dw": "pw1"}  # what these read


def read_by(name):
    """-> group of a layer's input"""
    if name in READS:
        return READS[name] or "symbols"
    block, layer = name.rsplit(".", 1)
    return group_of(f"{block}.{INNER[layer]}" if layer in INNER else block)



def group_of(name):
    parts = name.split(".")
    if parts[-1] in INSIDE:
        return name
    while parts and ".".join(parts) not in GROUP:
        parts.pop()
    return GROUP[".".join(parts)] if parts else name
