"""Puts measured tables between the marks of a page, <!-- NAME --> and <!-- /NAME -->.

    python3 tables.py rd docs/BENCH.md <MARKDOWN
    python3 tables.py loss BASE.json LITE.json docs/CONVERT.md      from `nvcodec convert --json --loss`
"""
import json
import os
import sys


def put(page, name, text):
    s = open(page, encoding="utf-8").read()
    a, b = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    i, j = s.index(a) + len(a), s.index(b)
    with open(page, "w", encoding="utf-8") as f:
        f.write(s[:i] + text.strip("\n") + "\n" + s[j:])


def number(x, digits):
    return f"{x:+.{digits}f}".replace("-", "−")


def loss(path):
    """-> QPs, rows, one a clip: bits and PSNR-Y of the integers against the float network, means over the QPs"""
    model = json.load(open(path))
    size, clips, out, all = model["name"].split("-")[-1], {}, [], []
    for r in model["loss"]:
        clips.setdefault(os.path.basename(r["clip"]).rsplit(".", 1)[0], []).append((100 * (r["integer_bits"] / r["float_bits"] - 1), r["integer_psnr_y"] - r["float_psnr_y"]))
    for clip, v in clips.items():
        mean = [sum(x) / len(v) for x in zip(*v)]
        all.append(mean)
        short = next(p for p in clip.split("_") if p != "std")
        out.append(f"| {size} | {short} | {number(mean[0], 2)} % | {number(mean[1], 3)} dB | {' / '.join(number(b, 1) for b, _ in v)} % |")
    mean = [sum(x) / len(all) for x in zip(*all)]
    out.append(f"| {size} | **mean of {len(all)}** | **{number(mean[0], 2)} %** | **{number(mean[1], 3)} dB** | |")
    return list(dict.fromkeys(r["qp"] for r in model["loss"])), out


if __name__ == "__main__":
    what, *files = sys.argv[1:]
    if what == "rd":
        put(files[0], "rd", sys.stdin.read())
    else:
        qps, rows = zip(*map(loss, files[:-1]))
        head = [f"| model | clip | bits | PSNR-Y | bits at QP {' / '.join(map(str, qps[0]))} |", "| --- | --- | --- | --- | --- |"]
        put(files[-1], "loss", "\n".join(head + sum(rows, [])))
