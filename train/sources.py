"""manifest.tsv -> the files to train on: only material whose licence is stated for the file or by a stock id.

    python3 sources.py MANIFEST            paths, one a line
    python3 sources.py MANIFEST --licences  the table of models/LICENSES.md
"""
import csv
import sys

# Share-alike and copyleft would reach the weights' users, depending on whom one asks; "not verified", "believed" and a
# licence that is only the carrying repository's say nothing about the clip itself. All of it stays out.
DROP = ("BY-SA", "GPL", "not verified", "not stated", "believed")
REPOSITORY_ONLY = ("processing/p5.js", "pixijs", "OpenShot", "scikit-video", "EfficientTAM", "VideoProcessingFramework",
                   "facebookresearch/sam2", "tfjs-models", "mediapipe", "androidx/media")
ASKS = {
    "Pexels License": "nothing; no resale of the clips themselves, no implied endorsement by people shown",
    "Pixabay License": "nothing; no resale of the clips themselves, no implied endorsement by people shown",
    "Mixkit License": "nothing; no resale of the clips themselves",
    "Unsplash License": "nothing; no resale of the photos, no competing photo service from them",
    "CC0": "nothing",
    "US government": "nothing (public domain); no implied endorsement",
    "Unsplash photos": "nothing (its repository's README says public domain)",
    "CC BY 4.0": "attribution: this line",
    "CC BY 3.0": "attribution: this line",
    "BSD": "the copyright notice with copies of the clips (none are shipped); named here",
    "MIT": "the copyright notice with copies of the clips (none are shipped); named here",
}


def keep(row):
    lic = row["licence"]
    if not row["path"].startswith("train/") or any(d in lic for d in DROP):
        return False
    if "Pixabay" in lic or "Pexels" in lic:
        return True
    if any(r in row["source"] for r in REPOSITORY_ONLY) or lic.startswith("BSD-3 repo"):
        return False
    return kind(lic) is not None


def kind(lic):
    if "Pixabay" in lic:
        return "Pixabay License"
    return next((k for k in ASKS if lic.startswith(k)), None)


if __name__ == "__main__":
    rows = [r for r in csv.DictReader(open(sys.argv[1]), delimiter="\t", quoting=csv.QUOTE_NONE) if keep(r)]
    if "--licences" in sys.argv:
        groups = {}
        for r in rows:
            groups.setdefault((kind(r["licence"]), r["source"].split(":")[0]), []).append(r)
        print("| licence | carried by | files | which |\n| --- | --- | --- | --- |")
        for (k, repo), g in sorted(groups.items()):
            names = sorted({x["path"].rsplit("/", 1)[1].rsplit(".", 1)[0] + " (" + x["licence"].split("(", 1)[-1].rstrip(")") + ")" if "video" in x["path"] else "" for x in g} - {""})
            print(f"| {k} | {repo} | {len(g)} | {'; '.join(names) if names else 'photos'} |")
        print("\n| licence | files | what it asks for |\n| --- | --- | --- |")
        for k in ASKS:
            n = sum(kind(r["licence"]) == k for r in rows)
            if n:
                print(f"| {k} | {n} | {ASKS[k]} |")
    else:
        print("\n".join(r["path"] for r in rows))
