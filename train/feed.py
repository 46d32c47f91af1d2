"""Batches of windows, prepared on a stream of their own while the step before runs."""
import numpy as np
import torch

import motion
from data import windows
from model import luma, motion_lambda

LONGEST = 256  # inter frames of a sequence: networks drift beyond what they were trained on
RESET = 1 / 12  # share of windows that rebuild the memory


def captured(f, times=2):
    """f as a CUDA graph: thousands of small launches otherwise -> replay, what f returned"""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(times):
            f()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        out = f()
    return g.replay, out


class Feed:
    """Sequences run on from window to window. Buffers of each window length hold, in order: planes y [n+1,B,S,S,1] and uv, the frame before
    the window first; qp [B]; better [B], the intra frame's QP above it; depth [B] of the QP pattern; vectors [n,B,S/16,S/16,2]; at [B], inter frames coded since the intra frame; new and reset [B]."""

    def __init__(self, clips, rng, lengths, batch, size, shares, ranges, dev, graphs):
        """shares: as Clips.track has them; ranges: of better and depth"""
        self.clips, self.rng, self.lengths, self.batch, self.size, self.shares, self.dev = clips, rng, lengths, batch, size, shares, dev
        self.tracks, self.qps, self.ranges = [None] * batch, np.zeros((3, batch)), ranges
        qps, at = [torch.zeros(batch, device=dev) for _ in self.qps], torch.zeros(batch, dtype=torch.int64, device=dev)
        new, reset = torch.ones(batch, dtype=torch.bool, device=dev), torch.zeros(batch, dtype=torch.bool, device=dev)
        self.buffers = {n: (torch.zeros(n + 1, batch, size, size, 1, device=dev), torch.zeros(n + 1, batch, size // 2, size // 2, 2, device=dev), *qps,
                            torch.zeros(n, batch, size // 16, size // 16, 2, dtype=torch.int32, device=dev), at, new, reset) for n in lengths}
        self.searches = {n: self._capture(n) for n in lengths} if graphs else {}
        self.side, self.queue = torch.cuda.Stream() if dev.type == "cuda" else None, []

    def _capture(self, n):
        s = (n * self.batch, self.size, self.size)
        ins = (torch.rand(s, device=self.dev) * 255, torch.rand(s, device=self.dev) * 255, torch.full((s[0], 1, 1), 20.0, device=self.dev))
        return (*captured(lambda: motion.search(*ins)), ins)

    def _search(self, n, *ins):
        if n not in self.searches:
            return motion.search(*ins)
        replay, out, own = self.searches[n]
        for a, b in zip(own, ins):
            a.copy_(b)
        replay()
        return out.clone()

    def _prepare(self, n):
        for i, t in enumerate(self.tracks):
            while t is None or t.at + n > t.length:
                t = self.tracks[i] = self.clips.track(self.size, self.rng, self.shares, self._length())
                self.qps[:, i] = self.rng.integers(0, 64), *(self.rng.uniform(*r) for r in self.ranges)
        at = np.array([t.at for t in self.tracks])
        at, new, reset = [torch.from_numpy(x).to(self.dev) for x in (at, at == 0, self.rng.random(self.batch) < RESET)]
        y, u = windows(self.tracks, n)
        qp, better, depth = torch.from_numpy(self.qps).to(self.dev, torch.float32)
        lam = motion_lambda(qp) * torch.from_numpy(2.0 ** self.rng.uniform(-1, 1, self.batch)).to(self.dev, torch.float32)
        frames = luma(y)
        v = self._search(n, frames[1:].flatten(0, 1), frames[:-1].flatten(0, 1), lam.repeat(n)[:, None, None])
        return y, u, qp, better, depth, v.view(self.buffers[n][5].shape), at, new, reset

    def _length(self):
        """of a sequence: any order of magnitude as often as any other"""
        return int(np.exp(self.rng.uniform(np.log(max(self.lengths)), np.log(LONGEST))))

    def ahead(self, n=None):
        """begins a batch, of n inter frames or of a length drawn"""
        n = n or self.lengths[int(self.rng.integers(len(self.lengths)))]
        if self.side:
            with torch.cuda.stream(self.side):
                self.queue.append((n, self._prepare(n)))
        else:
            self.queue.append((n, self._prepare(n)))

    def next(self):
        """fills the buffers with the batch begun last -> its length"""
        if not self.queue:
            self.ahead()
        n, got = self.queue.pop()
        if self.side:
            torch.cuda.current_stream().wait_stream(self.side)
        for x, b in zip(got, self.buffers[n]):
            if self.side:
                x.record_stream(torch.cuda.current_stream())
            b.copy_(x)
        return n
