"""Fractional bits for a float network, chosen as convert/calibrate.go chooses them: from what each group of values comes to on convert's
own frames, and on three computed clips that reach further than most video.

    python3 calibrate.py CHECKPOINT.pt ../convert/frames.safetensors     prints them
"""
import json
import sys

import numpy as np
import torch
import torch.nn.functional as F

import fixed
import model as M
import safetensors
from model import SHIFT, compensate, pack, to_planes

EXTREME = 0.8  # in place of the headroom: no room above what the computed clips come to


def colours(_, plane, y, x):
    n = ((y // 24 * 7 + x // 24 * 13 + plane * 5) * 2654435761) & 0xffffffff
    return 16 + (n >> 31) * 219


def texture(_, plane, y, x):
    if plane:
        return np.full_like(y, 128)
    n = ((y * 2 + x * 1021) * 2654435761) & 0xffffffff
    n = ((n ^ n >> 15) * 2246822519) & 0xffffffff
    return 64 + (x * x // 16 + y * 3) % 96 + (n >> 26)


def flash(frame, plane, y, x):
    v = np.where(x >= 64, colours(frame, plane, y, x), 128 if plane else 16)
    return 251 - v if frame % 2 else v


def computed(at):
    """3 frames of 128x128, seen 5 samples further right and 3 further down with each"""
    out = []
    for k in range(3):
        y, x = np.mgrid[0:128, 0:128].astype(np.int64)
        cy, cx = np.mgrid[0:64, 0:64].astype(np.int64)
        cy, cx = (2 * cy + 3 * k) // 2 * 2, (2 * cx + 5 * k) // 2 * 2
        out.append((at(k, 0, y + 3 * k, x + 5 * k).astype(np.uint8), np.stack([at(k, p, cy, cx) for p in (1, 2)]).astype(np.uint8)))
    return out


def clips(path):
    """-> [(headroom, [(y [h,w], uv [2,h/2,w/2])])]"""
    out = []
    for _, t in sorted(safetensors.read(path)[0].items()):
        h, w = t.shape[1] // 3 * 2, t.shape[2]
        out.append((fixed.HEADROOM, [(f[:h], f[h:].reshape(h // 2, 2, w // 2).swapaxes(0, 1)) for f in t]))
    return out + [(EXTREME, computed(at)) for at in (colours, texture, flash)]


def padded(x, h, w, dev):
    """[C,h0,w0] bytes -> [1,h,w,C] centred"""
    x = torch.from_numpy(x.copy()).to(dev)[None].float() / 255 - 0.5
    return F.pad(x, (0, w - x.shape[3], 0, h - x.shape[2]), mode="replicate").permute(0, 2, 3, 1).contiguous()


@torch.no_grad()
def calibrate(both, points, path):
    """-> group -> F"""
    dev = next(both.parameters()).device
    points.set(None)
    for p in points.values():
        p.seen = 0.0
    for room, frames in clips(path):
        for p in points.values():
            p.watch = room
        H, W = [-(-n // 64) * 64 for n in frames[0][0].shape]
        still = torch.zeros(1, H // 16, W // 16, 2, dtype=torch.int64, device=dev)
        for qp in (0, 21, 42, 63):
            for k, (y, uv) in enumerate(frames):
                u = padded(uv, H // 2, W // 2, dev)
                src = pack(padded(y[None], H, W, dev), u[..., :1].contiguous(), u[..., 1:].contiguous())
                t = torch.tensor([((qp if k == 0 else max(0, qp - SHIFT[(k - 1) % 8])) - 31.5) / 31.5], device=dev)
                if k == 0:
                    x, _ = both["i"](src, t)
                else:
                    pred = compensate(to_planes(x), still)
                    mem = both["p"].start(pred) if k == 1 else both["p"].step(mem, feat, pred, still)
                    x, feat, _ = both["p"](src, pred, mem, t)
    for p in points.values():
        p.watch = 0.0
    return points.fractions()


def main():
    both = M.networks(torch.load(sys.argv[1], map_location="cpu"))
    M.QAT["on"] = True
    print(json.dumps(calibrate(both, M.assign(both), sys.argv[2])))


if __name__ == "__main__":
    main()
