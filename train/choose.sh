#!/usr/bin/env bash
# Compares checkpoints with the shipped model by real integer streams: BD-rate of whole files over QP 0, 21, 42, 63.
#
#   CLIPS=FOLDER choose.sh nvc1-base A.pt B.pt …
#
# ONLY (default: five clips) says which clips. Points are kept in CACHE (default out/rd/peers.json), so that what was measured here is not
# coded again by `ship.sh rd`. BIN: built nvcodec and rd, made there if they are missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."
name=$1
shift
bin=${BIN:-bin} python=${PYTHON:-/usr/bin/python3} cache=${CACHE:-out/rd/peers.json} only=${ONLY:-carphone,parkjoy,driving,aurora,waterfall}
mkdir -p out/choose "$(dirname "$cache")"
for x in nvcodec:cmd/nvcodec rd:bench/rd; do
	[ -x "$bin/${x%%:*}" ] || scripts/go.sh build -o "$bin/${x%%:*}" "./${x#*:}"
done
models=models/$name.nvm
for checkpoint in "$@"; do
	to=out/choose/$name-$(basename "$checkpoint" .pt)
	"$python" train/export.py "$checkpoint" "$to.safetensors"
	"$bin/nvcodec" convert --overwrite "$to.safetensors" "$to.nvm" | tail -1
	models+=,$to.nvm
done
"$bin/rd" -peers=false -only "$only" -models "$models" -cache "$cache" "$CLIPS" 2>/dev/null
