"""Enough of Triton to run the fused kernels on a CPU, a program at a time, so that a machine without a GPU can test it. Importing this puts it
in Triton's place. Pointers are flat tensors with offsets; an access outside of a tensor fails."""
import itertools
import sys
import types

import torch


class Pointer:
    def __init__(self, tensor, offset=0):
        self.tensor, self.offset = tensor, offset

    def __add__(self, offset):
        return Pointer(self.tensor, self.offset + offset)


def at(p, mask):
    """-> flat view, indices where mask holds, mask"""
    offset = torch.as_tensor(p.offset)
    mask = torch.ones_like(offset, dtype=torch.bool) if mask is None else mask.expand(offset.shape)
    return p.tensor.view(-1), offset[mask].long(), mask


def load(p, mask=None, other=0.0):
    flat, i, mask = at(p, mask)
    out = torch.full(mask.shape, other, dtype=flat.dtype)
    out[mask] = flat[i]
    return out


def store(p, x, mask=None):
    flat, i, mask = at(p, mask)
    assert len(i.unique()) == len(i), "two stores to one place"
    flat[i] = x.expand(mask.shape)[mask].to(flat.dtype)


def atomic_add(p, x, mask=None):
    flat, i, mask = at(p, mask)
    flat.index_add_(0, i, x.expand(mask.shape)[mask].to(flat.dtype))


def tensor(x):
    return x if isinstance(x, torch.Tensor) else torch.tensor(x)


program = [0, 0, 0]
language = types.ModuleType("triton.language")
language.__dict__.update(
    load=load, store=store, atomic_add=atomic_add, constexpr=int, float32=torch.float32, int32=torch.int32, static_range=range, arange=torch.arange, floor=torch.floor,
    cdiv=lambda a, b: -(-a // b), abs=torch.abs, exp=torch.exp, log2=torch.log2, max=lambda x, axis: x.max(axis).values, trans=lambda x: x.T, dot=lambda a, b, input_precision: a.float() @ b.float(),
    zeros=lambda s, t: torch.zeros(s, dtype=t), sum=lambda x, axis: x.sum(axis), program_id=lambda axis: program[axis],
    where=lambda c, a, b: torch.where(torch.as_tensor(c), tensor(a), tensor(b)), minimum=lambda a, b: torch.minimum(tensor(a), tensor(b)), maximum=lambda a, b: torch.maximum(tensor(a), tensor(b)))


class jit:
    def __init__(self, f):
        self.f = f

    def __call__(self, *args):
        return self.f(*args)

    def __getitem__(self, grid):
        def launch(*args, num_warps=None, **constants):
            args = [Pointer(a.detach()) if isinstance(a, torch.Tensor) else a for a in args]
            for program[:] in itertools.product(*map(range, (*grid, 1, 1)[:3])):
                self.f(*args, **constants)
        return launch


triton = types.ModuleType("triton")
triton.jit, triton.language, triton.cdiv, triton.next_power_of_2 = jit, language, lambda a, b: -(-a // b), lambda n: 1 << (n - 1).bit_length()
sys.modules["triton"], sys.modules["triton.language"] = triton, language
