"""Layers and blocks as training runs them on a GPU: weights are rounded to int8 once a step, not in every frame, and gradients of weights are
summed up in float32 where the optimiser keeps them, by the kernel that computes them. A window of 17 frames is a few thousand launches then,
where every layer of every frame by autograd alone makes ten times as many, most of them shorter than a launch."""
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

import kernels


@triton.jit
def _int8(w, out, n, row, column, B: tl.constexpr):
    """one output channel's weights: n of them, `column` apart"""
    i = tl.arange(0, B)
    at = tl.program_id(0) * row + i * column
    x = tl.load(w + at, mask=i < n, other=0.0)
    s = tl.maximum(tl.max(tl.abs(x), 0), 1e-6) / 127
    k = (x / s + 12582912.0) - 12582912.0  # to a whole number, half to even
    tl.store(out + at, k * s, mask=i < n)


@triton.jit
def _add(part, gy, x, gw, gb, N, O, I, CHUNK, BO: tl.constexpr, BI: tl.constexpr, BN: tl.constexpr):
    """gw [O,I] += gy'x, gb [O] += the sum of gy: a part is a tile of gw over CHUNK of N positions"""
    across = tl.cdiv(I, BI)
    tiles = tl.cdiv(O, BO) * across
    first, t = part // tiles * CHUNK, part % tiles
    o, i = t // across * BO + tl.arange(0, BO), t % across * BI + tl.arange(0, BI)
    sums, bias = tl.zeros((BO, BI), tl.float32), tl.zeros((BO,), tl.float32)
    for k in range(0, CHUNK, BN):
        n = first + k + tl.arange(0, BN)
        g = tl.load(gy + n[:, None] * O + o[None, :], mask=(n[:, None] < N) & (o[None, :] < O), other=0.0)
        v = tl.load(x + n[:, None] * I + i[None, :], mask=(n[:, None] < N) & (i[None, :] < I), other=0.0)
        sums += tl.dot(tl.trans(g), v, input_precision="ieee")
        bias += tl.sum(g.to(tl.float32), 0)
    tl.atomic_add(gw + o[:, None] * I + i[None, :], sums, mask=(o[:, None] < O) & (i[None, :] < I))
    if t % across == 0:
        tl.atomic_add(gb + o, bias, mask=o < O)


@triton.jit
def _gradients(gy, x, gw, gb, O, I, N, CHUNK, BO: tl.constexpr, BI: tl.constexpr, BN: tl.constexpr):
    _add(tl.program_id(0), gy, x, gw, gb, N, O, I, CHUNK, BO, BI, BN)


@triton.jit
def _block_gradients(gy0, x0, gw0, gb0, O0, I0, E0, gy1, x1, gw1, gb1, O1, I1, E1, gy2, x2, gw2, gb2, O2, I2, E2, gy3, x3, gw3, gb3, O3, I3, N, CHUNK,
                     BO: tl.constexpr, BI: tl.constexpr, BN: tl.constexpr):
    """four layers' in one launch; layer k's programs end before Ek"""
    p = tl.program_id(0)
    if p < E0:
        _add(p, gy0, x0, gw0, gb0, N, O0, I0, CHUNK, BO, BI, BN)
    elif p < E1:
        _add(p - E0, gy1, x1, gw1, gb1, N, O1, I1, CHUNK, BO, BI, BN)
    elif p < E2:
        _add(p - E1, gy2, x2, gw2, gb2, N, O2, I2, CHUNK, BO, BI, BN)
    else:
        _add(p - E2, gy3, x3, gw3, gb3, N, O3, I3, CHUNK, BO, BI, BN)


PROGRAMS = 396  # three for each multiprocessor
BO, BI, BN = 64, 128, 64


def gradients(*work):
    """work: (gradient of the result, input, layer), one or four of them over equally many positions"""
    n, tiles = work[0][1].numel() // work[0][1].shape[-1], [triton.cdiv(gy.shape[-1], BO) * triton.cdiv(x.shape[-1], BI) for gy, x, _ in work]
    chunk = triton.cdiv(triton.cdiv(n, max(1, PROGRAMS // sum(tiles))), BN) * BN
    arguments, end = [], 0
    for (gy, x, layer), t in zip(work, tiles):
        end += t * triton.cdiv(n, chunk)
        arguments += [gy, x, layer.weight.grad, layer.bias.grad, gy.shape[-1], x.shape[-1], end]
    (_gradients if len(work) == 1 else _block_gradients)[(end,)](*arguments[:-1], n, chunk, BO=BO, BI=BI, BN=BN, num_warps=4)


def rounded(w, channel, kind):
    """w to int8 with a scale for each channel, which is dimension `channel` of two"""
    out, n = torch.empty_like(w, dtype=kind), w.shape[1 - channel]
    _int8[(w.shape[channel],)](w, out, n, w.stride(channel), w.stride(1 - channel), B=triton.next_power_of_2(n))
    return out


@torch.no_grad()
def prepare(both, lins, depthwise, kind=torch.bfloat16):
    """to be called once for the weights as they are: they and their biases as layers use them"""
    for m in both.modules():
        if isinstance(m, lins):
            m.ready = rounded(m.weight, 0, kind), m.bias.to(kind)
        elif isinstance(m, depthwise):
            m.ready = rounded(m.weight, 1, torch.float32), m.bias


def matrix(x, layer):
    w, b = layer.ready
    return F.linear(x.reshape(-1, x.shape[-1]), w, b).view(*x.shape[:-1], -1)


class _Linear(torch.autograd.Function):
    """weight is passed so that autograd comes by here even where x needs no gradient"""

    @staticmethod
    def forward(ctx, x, weight, layer):
        ctx.save_for_backward(x, layer.ready[0])
        ctx.layer = layer
        return matrix(x, layer)

    @staticmethod
    def backward(ctx, gy):
        x, w = ctx.saved_tensors
        gy = gy.contiguous()
        gradients((gy, x, ctx.layer))
        return gy @ w if ctx.needs_input_grad[0] else None, None, None


def linear(x, layer):
    return _Linear.apply(x.to(layer.ready[0].dtype).contiguous(), layer.weight, layer)


class _Block(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, block):
        a = matrix(x, block.pw1)
        d = kernels.dw_forward(a, *block.dw.ready)
        y = matrix(d, block.pw2).add_(x)
        f = matrix(y, block.ff1)
        s = kernels.sum_forward(f)
        ctx.save_for_backward(x, a, d, y, f, s, *(m.ready[0] for m in (block.pw1, block.dw, block.pw2, block.ff1, block.ff2)))
        ctx.block = block
        return matrix(s, block.ff2).add_(y)

    @staticmethod
    def backward(ctx, g):
        x, a, d, y, f, s, w1, wd, w2, w3, w4 = ctx.saved_tensors
        b, g = ctx.block, g.contiguous()
        flat = lambda t: t.view(-1, t.shape[-1])
        gf = kernels.sum_backward(f, g @ w4)
        h = torch.addmm(flat(g), flat(gf), w3).view(y.shape)
        ga = kernels.dw_backward(a, wd, h @ w2, b.dw.weight.grad, b.dw.bias.grad)
        gradients((g, s, b.ff2), (gf, y, b.ff1), (h, d, b.pw2), (ga, x, b.pw1))
        return torch.addmm(flat(h), flat(ga), w1).view(x.shape) if ctx.needs_input_grad[0] else None, None, None


def block(x, b):
    return _Block.apply(x.to(b.pw1.ready[0].dtype).contiguous(), b.pw1.weight, b)
