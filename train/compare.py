"""two files of evaluate.py --out, or of bench/rd -out -> BD-rate (PCHIP) of the second against the first, and each point of both"""
import json
import sys

import numpy as np


def slopes(x, y):
    """Fritsch and Carlson's"""
    h, d = np.diff(x), np.diff(y) / np.diff(x)
    m = np.zeros_like(y)
    for i in range(1, len(x) - 1):
        if d[i - 1] * d[i] > 0:
            a, b = 2 * h[i] + h[i - 1], h[i] + 2 * h[i - 1]
            m[i] = (a + b) / (a / d[i - 1] + b / d[i])
    for i, j, k in ((0, 0, 1), (-1, -1, -2)):
        s = ((2 * h[j] + h[k]) * d[j] - h[j] * d[k]) / (h[j] + h[k])
        m[i] = 0 if s * d[j] <= 0 else 3 * d[j] if d[j] * d[k] <= 0 and abs(s) > 3 * abs(d[j]) else s
    return m


def integral(x, y, lo, hi):
    m, t = slopes(x, y), np.linspace(lo, hi, 2001)
    k = np.clip(np.searchsorted(x, t) - 1, 0, len(x) - 2)
    h = x[k + 1] - x[k]
    s = (t - x[k]) / h
    v = y[k] * (1 + 2 * s) * (1 - s) ** 2 + y[k + 1] * s * s * (3 - 2 * s) + h * m[k] * s * (1 - s) ** 2 + h * m[k + 1] * s * s * (s - 1)
    return float(((v[1:] + v[:-1]) / 2).sum() * (t[1] - t[0]))


def bd_rate(old, new):
    (pa, ra), (pb, rb) = [(np.array([r["psnr"] for r in x]), np.log([r["bpp"] for r in x])) for x in (old, new)]
    if (np.diff(pa) <= 0).any() or (np.diff(pb) <= 0).any():
        return float("nan")
    lo, hi = max(pa[0], pb[0]), min(pa[-1], pb[-1])
    return (np.exp((integral(pb, rb, lo, hi) - integral(pa, ra, lo, hi)) / (hi - lo)) - 1) * 100 if hi > lo else float("nan")


def points(path):
    """-> points of each clip; of bench/rd's files the first model's, whose rate is that of whole files"""
    x = json.load(open(path))
    if isinstance(x, dict):
        return x
    size = lambda c: np.prod([int(n) for n in c["size"].split("x")]) * c["frames"]
    return {c["name"]: [dict(qp=p["setting"], bpp=p["bytes"] * 8 / size(c), psnr=p["psnr_y"], late=p["psnr_y"]) for p in next(iter(c["curves"].values()))] for c in x}


if __name__ == "__main__":
    old, new = points(sys.argv[1]), points(sys.argv[2])
    bds = []
    print("| clip | QP | old bpp / PSNR (late) | new bpp / PSNR (late) | BD-rate |\n| --- | --- | --- | --- | --- |")
    for c in old:
        if c in new and new[c]:
            bd = bd_rate(old[c], new[c]) if len(old[c]) > 3 else float("nan")
            bds.append(bd)
            for a, b in zip(old[c], new[c]):
                print(f"| {c} | {a['qp']} | {a['bpp']:.4f} / {a['psnr']:.2f} ({a['late']:.2f}) | {b['bpp']:.4f} / {b['psnr']:.2f} ({b['late']:.2f}) | {bd:+.1f} % |")
    print("mean", round(float(np.nanmean(bds)), 2), "%")
