"""The integer network as docs/MODEL.md defines it, read from a finished model file and computed in numpy: every operator, the encoder's
side. It shares nothing with the Go kernels but the document.

    python3 integer.py MODEL.nvm FRAMES.json OUT

codes the frames that FRAMES.json lists: {"width", "height" (padded), "planes": file of Y, U, V for each frame, "vectors": file of int16 (vy, vx)
for each frame whose graph reads them, "frames": [{"graph", "qp", "threshold"}]}. OUT: for each frame its sections' symbols (int16) and
tables (bytes), in the stream's order, then the decoded Y, U, V.
"""
import json
import os
import re
import sys

import numpy as np

import safetensors

LUMA = np.array([[0, 0, 0, 64, 0, 0, 0, 0], [-1, 4, -10, 58, 17, -5, 1, 0], [-1, 4, -11, 40, 40, -11, 4, -1], [0, 1, -5, 17, 58, -10, 4, -1]])
CHROMA = np.array([[0, 64, 0, 0], [-2, 58, 10, -2], [-4, 54, 16, -2], [-6, 46, 28, -4], [-4, 36, 36, -4], [-4, 28, 46, -6], [-2, 16, 54, -4], [-2, 10, 58, -2]])
NODE = re.compile(r"(\S+) = (\w+)\(([^)]*)\) (\w+)(.*)")


class Node:
    def __init__(self, line):
        m = NODE.fullmatch(line)
        if not m:
            raise ValueError(f"not a node: {line!r}")
        self.out, self.op, inputs, self.kind, rest = m.groups()
        self.inputs = inputs.split(", ") if inputs else []
        self.tensors, self.ints = {}, {}
        for key, value in (p.split("=") for p in rest.split()):
            if value[0] == "@":
                self.tensors[key] = value[1:]
            else:
                self.ints[key] = int(value)
        self.f = self.ints.get("f")


class Model:
    def __init__(self, path):
        self.tensors, meta = safetensors.read(path)
        if meta["format"] != "1" or meta["profile"] != "nvc-int-1":
            raise ValueError(f"format {meta['format']}, profile {meta['profile']}: this reads 1 and nvc-int-1")
        self.name, self.graphs, nodes = meta["name"], {}, None
        for line in meta["graphs"].splitlines():
            if line.startswith("graph "):
                nodes = self.graphs[line[6:]] = []
            else:
                nodes.append(Node(line))

    def fractions(self):
        """node -> its fractional bits"""
        return {n.out: n.f for g in self.graphs.values() for n in g if n.kind == "feature"}


def rnd(a, s):
    return (a + (1 << s >> 1)) >> s


def sat16(a):
    return np.clip(a, -32768, 32767)


def act(x, f):
    return rnd(x * np.clip(x + (1 << f - 1), 0, 1 << f), f)


def s2d(x, r):
    h, w, c = x.shape
    return x.reshape(h // r, r, w // r, r, c).swapaxes(1, 2).reshape(h // r, w // r, r * r * c)


def d2s(x, r):
    h, w, c = x.shape
    return x.reshape(h, w, r, r, c // r // r).swapaxes(1, 2).reshape(h * r, w * r, c // r // r)


def coded(shape, step):
    """-> bool [h][w][C]: the elements that a step codes"""
    h, w, c = shape
    first = (np.add.outer(np.arange(h), np.arange(w)) + step) % 2 == 0
    return np.where(np.arange(c) < c // 2, first[..., None], ~first[..., None])


def compensated(ref, mv, block, bits, taps):
    """one plane [h][w]; mv in 1/2**bits samples for each block"""
    h, w = ref.shape
    n, v = taps.shape[1], mv.repeat(block, 0).repeat(block, 1)
    y, x = [np.clip(at[..., None] + (v[..., k] >> bits)[..., None] - (n // 2 - 1) + np.arange(n), 0, size - 1)
            for k, at, size in ((0, np.arange(h)[:, None], h), (1, np.arange(w)[None], w))]
    ty, tx = taps[v[..., 0] & (1 << bits) - 1], taps[v[..., 1] & (1 << bits) - 1]
    total = np.einsum("hwa,hwb,hwab->hw", ty, tx, ref[y[..., :, None], x[..., None, :]])
    return np.clip((total + 2048) >> 12, 0, 255)


class Session:
    """Codes frames one after another; what one leaves to the next is kept here. Values are int64 [h][w][C]."""

    def __init__(self, model):
        self.model, self.picture, self.memory, self.feature = model, None, None, None

    def encode(self, graph, qp, planes, vectors=None, threshold=0):
        """planes: [y, u, v] at padded size; vectors: [H/16][W/16][2] -> [(symbols, tables)], decoded planes"""
        self.qp, self.threshold, self.vectors = qp, threshold, None if vectors is None else vectors.astype(np.int64)
        self.source, self.sections, self.next = [p.astype(np.int64) for p in planes], [], {}
        self.values, self.f = {}, {}
        for n in self.model.graphs[graph]:
            self.values[n.out], self.f[n.out] = getattr(self, "op_" + n.op)(n, *(self.values[i] for i in n.inputs)), n.f
        self.memory, self.feature = self.next.get("memory"), self.next.get("feature")
        return self.sections, self.picture

    def tensor(self, n, role):
        return self.model.tensors[n.tensors[role]].astype(np.int64)

    def requantise(self, n, acc):
        return sat16(rnd(acc * self.tensor(n, "mul"), n.ints["shift"]))

    def op_lin(self, n, x, res=None):
        w = self.tensor(n, "w")
        if self.model.tensors[n.tensors["w"]].dtype == np.int8:  # sums below 2^31 are exact in float64, whose products are fast
            acc = (x.astype(np.float64) @ w.T.astype(np.float64)).astype(np.int64)
        else:
            acc = x @ w.T
        v = self.requantise(n, acc + self.tensor(n, "bias"))
        return v if res is None else sat16(res + v)

    def op_dwact(self, n, x):
        h, w, _ = x.shape
        a, k = np.pad(act(x, self.f[n.inputs[0]]), ((1, 1), (1, 1), (0, 0))), self.tensor(n, "w")
        return self.requantise(n, self.tensor(n, "bias") + sum(k[dy * 3 + dx] * a[dy:dy + h, dx:dx + w] for dy in range(3) for dx in range(3)))

    def op_actsum4(self, n, x):
        return sat16(sum(np.split(act(x, self.f[n.inputs[0]]), 4, -1)))

    def op_scale(self, n, x):
        return sat16(rnd(x * self.tensor(n, "table")[self.qp], n.ints["shift"]))

    def op_requant(self, n, x):
        s = self.f[n.inputs[0]] - n.f
        return sat16(rnd(x, s) if s >= 0 else x << -s)

    def op_clamp(self, n, x):
        return np.clip(x, n.ints["lo"], n.ints["hi"])

    def op_concat(self, n, *x):
        return np.concatenate(x, -1)

    def op_s2d(self, n, x):
        return s2d(x, n.ints["r"])

    def op_d2s(self, n, x):
        return d2s(x, n.ints["r"])

    def op_move(self, n, x, mv):
        h, w, _ = x.shape
        v = ((mv + 16) >> 5).repeat(2, 0).repeat(2, 1)
        return x[np.clip(np.arange(h)[:, None] + v[..., 0], 0, h - 1), np.clip(np.arange(w)[None] + v[..., 1], 0, w - 1)]

    def op_source(self, n):
        return self.source

    def op_reference(self, n):
        return self.picture

    def op_vectors(self, n):
        return self.vectors

    def op_compensate(self, n, ref, mv):
        y, u, v = ref
        return [compensated(y, mv, 16, 2, LUMA)] + [compensated(p, mv, 8, 3, CHROMA) for p in (u, v)]

    def op_pack(self, n, planes):
        t = self.tensor(n, "table")
        return np.concatenate([s2d(t[p][..., None], r) for p, r in zip(planes, (8, 4, 4))], -1)

    def op_picture(self, n, head, pred=None):
        x, f = head if pred is None else sat16(pred + head), self.f[n.inputs[0]]
        x = np.clip(rnd(255 * x + (255 << f - 1), f), 0, 255)
        self.picture = [d2s(part, r)[..., 0] for part, r in zip(np.split(x, (64, 80), -1), (8, 4, 4))]

    def op_memory_in(self, n):
        return self.memory

    def op_feature_in(self, n):
        return self.feature

    def op_memory_out(self, n, x):
        self.next["memory"] = x

    def op_feature_out(self, n, x):
        self.next["feature"] = x

    def op_code_z(self, n, x):
        k = np.clip(rnd(x, self.f[n.inputs[0]]), -127, 127)
        self.sections.append((k, np.broadcast_to(64 + self.tensor(n, "table")[self.qp], k.shape)))
        return k

    def op_index(self, n, v):
        return np.clip(rnd(8 * v, self.f[n.inputs[0]]) + 16, 0, 63)

    def op_code_y(self, n, y, q, mean, index):
        fy, fm = self.f[n.inputs[0]], self.f[n.inputs[2]]
        ys = rnd(y * self.tensor(n, "rexp")[np.clip(q, -1536, 1536) + 1536], 16 + fy - fm)
        k = np.clip(rnd(ys - mean, fm), -(32767 >> fm), 32767 >> fm)
        k = np.where(index < self.threshold, 0, k)
        on, half = coded(k.shape, n.ints["step"]), (*k.shape[:2], -1)
        self.sections.append((k[on].reshape(half), index[on].reshape(half)))
        return k

    def op_latent(self, n, k, mean, base=None):
        on = coded(mean.shape, n.ints["step"])
        return np.where(on, sat16((k << n.f) + mean), 0 if base is None else base)

    def op_unstep(self, n, yhat, q):
        e = self.tensor(n, "exp")[np.clip(q, -1536, 1536) + 1536]
        return sat16(rnd(yhat * e, 16 + self.f[n.inputs[0]] - n.f))


def main():
    model, (spec, out) = Model(sys.argv[1]), sys.argv[2:]
    spec, folder = json.load(open(spec)), os.path.dirname(os.path.abspath(spec))
    w, h = spec["width"], spec["height"]
    planes = np.fromfile(os.path.join(folder, spec["planes"]), np.uint8).reshape(-1, w * h * 3 // 2)
    vectors = iter(np.fromfile(os.path.join(folder, spec["vectors"]), np.int16).reshape(-1, h // 16, w // 16, 2))
    s = Session(model)
    with open(out, "wb") as f:
        for p, frame in zip(planes, spec["frames"]):
            yuv = [x.reshape(-1, width) for x, width in zip(np.split(p, (w * h, w * h * 5 // 4)), (w, w // 2, w // 2))]
            reads = any(n.op == "vectors" for n in model.graphs[frame["graph"]])
            sections, picture = s.encode(frame["graph"], frame["qp"], yuv, next(vectors) if reads else None, frame["threshold"])
            for symbols, tables in sections:
                f.write(symbols.astype(np.int16).tobytes() + tables.astype(np.uint8).tobytes())
            f.write(b"".join(x.astype(np.uint8).tobytes() for x in picture))


if __name__ == "__main__":
    main()
