"""Held-out clips, coded every so many steps of a run by the averaged weights: BD-rate against the weights that the run began with.

The vectors are the search's alone, and their bits are not counted: real figures come from the integer codec. All clips have one size, a multiple of 64; shorter ones
are played to and fro."""
import glob
import os

import numpy as np
import torch

import motion
from compare import bd_rate
from data import load, to_and_fro
from model import SHIFT, motion_lambda, pack, predicted, unpack

QPS = (0, 21, 42, 63)


class Judge:
    def __init__(self, folder, frames, better, dev):
        clips = [load(p) for p in sorted(glob.glob(os.path.join(folder, "*.mp4")))]
        n, k = frames, len(QPS)
        y, u = [torch.stack([c[i][to_and_fro(len(c[i]), np.arange(n))] for c in clips], 1).to(dev) for i in (0, 1)]
        y, u = y.float(), u.permute(0, 1, 3, 4, 2).float()  # [n,S,H,W], [n,S,H/2,W/2,2]
        self.luma, self.n, self.clips = y.repeat(1, k, 1, 1), n, len(clips)
        self.y, self.u = (self.luma[..., None] / 255 - 0.5), (u.repeat(1, k, 1, 1, 1) / 255 - 0.5)
        self.qp = torch.tensor(QPS, device=dev).float().repeat_interleave(self.clips)
        with torch.no_grad():
            self.vectors = [motion.search(self.luma[t], self.luma[t - 1], motion_lambda(self._qp(t))[:, None, None], coarse=8) for t in range(1, n)]
        self.better, self.first, self.mean = better, None, None  # mean: BD-rate of the last call, in per cent

    def _qp(self, t):
        return self.qp if t == 0 else torch.clamp(self.qp - SHIFT[(t - 1) % 8], 0, 63)

    def _code(self, both, better):
        """better: the intra frame's QP above the others' -> bits a sample, PSNR-Y [n, QPs x clips]"""
        bits, psnr = [], []
        for t in range(self.n):
            src, at = pack(self.y[t], self.u[t][..., :1].contiguous(), self.u[t][..., 1:].contiguous()), (self._qp(t) - 31.5) / 31.5
            if t == 0:
                x, b = both["i"](src, (torch.clamp(self.qp + better, 0, 63) - 31.5) / 31.5)
            else:
                pred, v = predicted(x, self.luma[t], self.vectors[t - 1], self._qp(t))
                mem = both["p"].start(pred) if t == 1 else both["p"].step(mem, feat, pred, v)
                x, feat, b = both["p"](src, pred, mem, at)
            out = torch.clamp(torch.floor((unpack(x)[0][..., 0] + 0.5) * 255 + 0.5), 0, 255)
            bits.append(b / out[0].numel())
            psnr.append(10 * torch.log10(65025 / ((out - self.luma[t]) ** 2).mean((1, 2)).clamp_min(1e-3)))
        return torch.stack(bits).double().cpu().numpy(), torch.stack(psnr).double().cpu().numpy()

    def _points(self, bits, psnr):
        b, p = [x.mean(0).reshape(len(QPS), -1) for x in (bits, psnr)]
        return [[dict(bpp=float(b[q, c]), psnr=float(p[q, c])) for q in range(len(QPS))] for c in range(self.clips)]

    @torch.no_grad()
    def __call__(self, both):
        """-> one line"""
        bits, psnr = self._code(both, self.better)
        if self.first is None:
            self.first = self._points(*(self._code(both, 0) if self.better else (bits, psnr)))
        third = self.n // 3
        sag = (psnr[-third:].mean(0) - psnr[third:2 * third].mean(0)).reshape(len(QPS), -1).mean(1)
        b, p = [x.mean(0).reshape(len(QPS), -1) for x in (bits, psnr)]
        bd = [bd_rate(old, new) for old, new in zip(self.first, self._points(bits, psnr))]
        self.mean = float(np.nanmean(bd))
        return (f"BD-rate {self.mean:+.2f} % ({' '.join(f'{x:+.1f}' for x in bd)}) bits {' '.join(f'{x:.4f}' for x in b.mean(1))} "
                f"PSNR {' '.join(f'{x:.2f}' for x in p.mean(1))} late - early {' '.join(f'{x:+.2f}' for x in sag)} intra {psnr[0].reshape(len(QPS), -1).mean(1).round(2)}")
