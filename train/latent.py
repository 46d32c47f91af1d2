"""A latent's coding, but for the network between its two halves, as two kernels each way in place of some hundred: Codec.latent in floats is the
definition. Rows are positions, Y channels each. What the first passes on to the second: y in units of its step, log step q, log scale v and mean."""
import torch
import triton
import triton.language as tl

from kernels import inward


@triton.jit
def _erfc(x):
    """within 1.2e-7 of its value (W. H. Press et al., Numerical Recipes, 2nd edition, 6.2: erfcc), which a difference of erf is not far out"""
    t = 1 / (1 + 0.5 * tl.abs(x))
    e = t * tl.exp(-x * x - 1.26551223 + t * (1.00002368 + t * (0.37409196 + t * (0.09678418 + t * (-0.18628806 + t * (0.27886807 + t * (-1.13520398 + t * (1.48851587 + t * (-0.82215223 + t * 0.17087277)))))))))
    return tl.where(x < 0, 2 - e, e)


@triton.jit
def _tails(r, s):
    """probability of r and more than half a step either way, and the two limits in units of sqrt(2) s"""
    a, b = (r + 0.5) / s * 0.7071067811865476, (r - 0.5) / s * 0.7071067811865476
    return 0.5 * (_erfc(b) - _erfc(a)) + 1e-5 * tl.exp(-r / 8), a, b


@triton.jit
def _place(Y, W, HW, B: tl.constexpr):
    """-> position and channel of a program's elements, whether they exist, and whether the first half codes them"""
    n, c = tl.program_id(0), tl.arange(0, B)
    even = (n % HW // W + n % W) % 2 == 0
    return n, c, c < Y, even == (c < Y // 2)


@triton.jit
def _index(v):
    """of the scale of log scale v"""
    return tl.floor(v * 8 + 16.5)


@triton.jit
def _first(y, raw, joined, inner, skip, Y, W, HW, B: tl.constexpr):
    n, c, m, mine = _place(Y, W, HW, B)
    p = raw + n * 3 * Y + c
    q = tl.minimum(tl.maximum(tl.load(p, mask=m, other=0.0).to(tl.float32), -3.0), 3.0)
    v = tl.minimum(tl.maximum(tl.load(p + Y, mask=m, other=0.0).to(tl.float32), -2.0), 5.875)
    mean = tl.load(p + 2 * Y, mask=m, other=0.0).to(tl.float32)
    s = tl.load(y + n * Y + c, mask=m, other=0.0).to(tl.float32) * tl.exp(-q)
    j, i = joined + n * 4 * Y + c, inner + n * 4 * Y + c
    tl.store(j, tl.where(mine, tl.where(_index(v) < skip, 0.0, tl.floor(s - mean + 0.5)) + mean, 0.0), mask=m)
    tl.store(j + Y, q, mask=m)
    tl.store(j + 2 * Y, v, mask=m)
    tl.store(j + 3 * Y, mean, mask=m)
    tl.store(i, s, mask=m)
    tl.store(i + Y, q, mask=m)
    tl.store(i + 2 * Y, v, mask=m)
    tl.store(i + 3 * Y, mean, mask=m)


@triton.jit
def _first_bwd(y, raw, inner, gj, gi, gy, gp, skip, Y, W, HW, B: tl.constexpr):
    n, c, m, mine = _place(Y, W, HW, B)
    j, i, o, p = gj + n * 4 * Y + c, gi + n * 4 * Y + c, gp + n * 3 * Y + c, raw + n * 3 * Y + c
    s, q = tl.load(inner + n * 4 * Y + c, mask=m, other=0.0), tl.load(inner + n * 4 * Y + Y + c, mask=m, other=0.0)
    whole, skipped = tl.where(mine, tl.load(j, mask=m, other=0.0).to(tl.float32), 0.0), _index(tl.load(inner + n * 4 * Y + 2 * Y + c, mask=m, other=0.0)) < skip
    gs = tl.load(i, mask=m, other=0.0) + tl.where(skipped, 0.0, whole)
    gq = tl.load(i + Y, mask=m, other=0.0) + tl.load(j + Y, mask=m, other=0.0).to(tl.float32) - gs * s
    gv = tl.load(i + 2 * Y, mask=m, other=0.0) + tl.load(j + 2 * Y, mask=m, other=0.0).to(tl.float32)
    gm = tl.load(i + 3 * Y, mask=m, other=0.0) + tl.load(j + 3 * Y, mask=m, other=0.0).to(tl.float32) + tl.where(skipped, whole, 0.0)
    a, b = tl.load(p, mask=m, other=0.0).to(tl.float32), tl.load(p + Y, mask=m, other=0.0).to(tl.float32)
    tl.store(gy + n * Y + c, gs * tl.exp(-q), mask=m)
    tl.store(o, inward(a, gq, -3.0, 3.0), mask=m)
    tl.store(o + Y, inward(b, gv, -2.0, 5.875), mask=m)
    tl.store(o + 2 * Y, gm, mask=m)


@triton.jit
def _second(mean1, inner, out, slope, by_v, total, least, step, skip, Y, W, HW, B: tl.constexpr):
    n, c, m, first = _place(Y, W, HW, B)
    i = inner + n * 4 * Y + c
    s, q, v = tl.load(i, mask=m, other=0.0), tl.load(i + Y, mask=m, other=0.0), tl.load(i + 2 * Y, mask=m, other=0.0)
    mean = tl.where(first, tl.load(i + 3 * Y, mask=m, other=0.0), tl.load(mean1 + n * Y + c, mask=m, other=0.0).to(tl.float32))
    r, scale, skipped = s - mean, least * tl.exp(_index(v) * step), _index(v) < skip
    k = tl.floor(r + 0.5)
    p, a, b = _tails(tl.abs(k), scale)
    more, _, _ = _tails(tl.abs(r + 0.5), scale)
    less, _, _ = _tails(tl.abs(r - 0.5), scale)
    at = n * Y + c
    tl.store(out + at, (tl.where(skipped, 0.0, k) + mean) * tl.exp(q), mask=m)
    tl.store(slope + at, tl.log2(less) - tl.log2(more), mask=m)
    tl.store(by_v + at, (a * tl.exp(-a * a) - b * tl.exp(-b * b)) / p * (step * 8 * 0.8139535143), mask=m)  # 1 / (ln 2 sqrt(pi))
    tl.atomic_add(total + n // HW, tl.sum(tl.where(m & (skipped == 0), -tl.log2(p), 0.0), 0))


@triton.jit
def _second_bwd(inner, out, slope, by_v, go, gt, gm, gi, skip, Y, W, HW, B: tl.constexpr):
    n, c, m, first = _place(Y, W, HW, B)
    at, i, total = n * Y + c, gi + n * 4 * Y + c, tl.load(gt + n // HW)
    q, g = tl.load(inner + n * 4 * Y + Y + c, mask=m, other=0.0), tl.load(go + at, mask=m, other=0.0).to(tl.float32)
    bits = tl.load(slope + at, mask=m, other=0.0) * total
    whole, skipped = g * tl.exp(q), _index(tl.load(inner + n * 4 * Y + 2 * Y + c, mask=m, other=0.0)) < skip
    by_mean = tl.where(skipped, whole, 0.0) - bits
    tl.store(gm + at, tl.where(first, 0.0, by_mean), mask=m)
    tl.store(i, whole + bits - tl.where(skipped, whole, 0.0), mask=m)
    tl.store(i + Y, g * tl.load(out + at, mask=m, other=0.0).to(tl.float32), mask=m)
    tl.store(i + 2 * Y, tl.load(by_v + at, mask=m, other=0.0) * total, mask=m)
    tl.store(i + 3 * Y, tl.where(first, by_mean, 0.0), mask=m)


def _shape(y):
    b, h, w, c = y.shape
    return (b * h * w,), (c, w, h * w), dict(B=triton.next_power_of_2(c), num_warps=1)


class _First(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y, params, skip):
        y, params = y.contiguous(), params.contiguous()
        grid, size, options = _shape(y)
        joined, inner = y.new_empty(*y.shape[:3], 4 * y.shape[3]), y.new_empty(*y.shape[:3], 4 * y.shape[3], dtype=torch.float32)
        _first[grid](y, params, joined, inner, skip, *size, **options)
        ctx.save_for_backward(y, params, inner)
        ctx.skip = skip
        return joined, inner

    @staticmethod
    def backward(ctx, gj, gi):
        y, params, inner = ctx.saved_tensors
        grid, size, options = _shape(y)
        gy, gp = torch.empty_like(y), torch.empty_like(params)
        _first_bwd[grid](y, params, inner, gj.contiguous(), gi.contiguous(), gy, gp, ctx.skip, *size, **options)
        return gy, gp, None


class _Second(torch.autograd.Function):
    @staticmethod
    def forward(ctx, mean, inner, least, step, skip):
        mean = mean.contiguous()
        grid, size, options = _shape(mean)
        out, slope, by_v = torch.empty_like(mean), *(torch.empty_like(mean, dtype=torch.float32) for _ in range(2))
        total = torch.zeros(len(mean), device=mean.device)
        _second[grid](mean, inner, out, slope, by_v, total, least, step, skip, *size, **options)
        ctx.save_for_backward(inner, out, slope, by_v)
        ctx.skip = skip
        return out, total

    @staticmethod
    def backward(ctx, go, gt):
        inner, out, slope, by_v = ctx.saved_tensors
        grid, size, options = _shape(out)
        gm, gi = torch.empty_like(out), torch.empty_like(inner)
        _second_bwd[grid](inner, out, slope, by_v, go.contiguous(), gt.contiguous(), gm, gi, ctx.skip, *size, **options)
        return gm, gi, None, None, None


def coded(y, params, spatial, least, step, skip=0):
    """-> the decoded latent and its bits, summed over each picture"""
    joined, inner = _First.apply(y, params, skip)
    return _Second.apply(spatial(joined), inner, least, step, skip)
