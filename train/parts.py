"""The material for remote.sh, in parts that travel one by one.

    python3 parts.py ROOT OUT [LARGEST]    from ROOT/manifest.tsv; OUT/part0 … part7, none above LARGEST MB (default 14.5)

partN/train: what sources.py lets through, each part a cross-section, calm clips and lively ones, so that any first parts make a beginning.
part0/judge: 8 clips that are not trained on for their licence, cropped to one size. OUT/READY lists files and MB of each part, written last."""
import os
import shutil
import subprocess
import sys
from csv import QUOTE_NONE, DictReader

from sources import keep

PARTS = 8
JUDGE = "bedroom_jump bee coffee_pour cups desert_road dog_walk_a flower_timelapse gesture_woman".split()


def size(p):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, names in os.walk(p) for f in names)


def deal(rows, filled):
    """-> rows of each part: rows of like bits a sample are dealt together, one to each part, the largest to the emptiest"""
    parts = [[] for _ in filled]
    bits = lambda r: int(r["bytes"]) / (int(r["width"]) * int(r["height"]) * int(r["frames"] or 1))
    for kind in ("videos", "images"):
        like = sorted((r for r in rows if kind in r["path"]), key=bits)
        for i in range(0, len(like), PARTS):
            emptiest = sorted(range(PARTS), key=filled.__getitem__)
            for p, r in zip(emptiest, sorted(like[i:i + PARTS], key=lambda r: -int(r["bytes"]))):
                parts[p].append(r)
                filled[p] += int(r["bytes"])
    return parts


if __name__ == "__main__":
    root, out, largest = sys.argv[1], sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else 14.5
    rows = list(DictReader(open(os.path.join(root, "manifest.tsv")), delimiter="\t", quoting=QUOTE_NONE))
    for p in range(PARTS):
        shutil.rmtree(os.path.join(out, f"part{p}"), ignore_errors=True)
    judge = os.path.join(out, "part0", "judge")
    os.makedirs(judge)
    for r in rows:
        name = os.path.basename(r["path"])
        if os.path.splitext(name)[0] in JUDGE:
            assert not keep(r), name
            subprocess.run(["ffmpeg", "-v", "error", "-i", os.path.join(root, r["path"]), "-an", "-vf", "crop=512:320", "-frames:v", "97", "-c:v", "libx264", "-crf", "12",
                            "-preset", "slow", "-pix_fmt", "yuv420p", os.path.join(judge, name)], check=True)
    assert len(os.listdir(judge)) == len(JUDGE)
    lines = []
    for p, part in enumerate(deal([r for r in rows if keep(r)], [size(judge)] + [0] * (PARTS - 1))):
        at = os.path.join(out, f"part{p}")
        for r in part:
            to = os.path.join(at, r["path"])
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(os.path.join(root, r["path"]), to)
        mb = size(at) / 1e6
        assert mb <= largest, f"part{p} has {mb:.1f} MB"
        lines.append(f"part{p} {sum('videos' in r['path'] for r in part)} clips {sum('images' in r['path'] for r in part)} pictures {mb:.2f} MB\n")
    with open(os.path.join(out, "READY"), "w") as f:
        f.writelines(lines)
    print("".join(lines), end="")
