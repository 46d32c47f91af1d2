"""Moves what QPs mean: QP 0 and QP 63 of the result are LEAST and MOST of the checkpoint, and all others lie between.

    python3 qps.py CHECKPOINT.pt RESULT.pt LEAST MOST [LEAST MOST]        -5.5 60, say; the second two for intra frames

Training with another loss or other windows lets one QP stand for more or fewer bits than it did. Scales and z's priors are smooth functions
of QP, exp(a + b t + c t²), so that this is exact and needs no training; a little beyond 0..63 they hold too."""
import sys

import torch


def move(w, net, least, most):
    """w: weights by name, changed in place; net: i or p"""
    m, d = (most - least) / 63, ((least + most) / 2 - 31.5) / 31.5  # t of what was = m t + d

    def moved(p):
        a, b, c = (x.float() for x in p)
        return [x.half() for x in (a + b * d + c * d * d, m * (b + 2 * c * d), c * m * m)]

    for k in [k[:-2] for k in w if k.startswith(net + ".") and k.endswith(".a")]:
        w[k + ".a"], w[k + ".b"], w[k + ".c"] = moved([w[k + s] for s in (".a", ".b", ".c")])
    for k in [k for k in w if k.startswith(net + ".") and k.endswith(".ls")]:
        w[k] = torch.stack(moved(w[k]))


if __name__ == "__main__":
    c = torch.load(sys.argv[1], map_location="cpu")
    ends = list(map(float, sys.argv[3:]))
    move(c["ema"], "p", *ends[:2])
    move(c["ema"], "i", *ends[-2:])
    torch.save(c, sys.argv[2])
