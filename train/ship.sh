#!/usr/bin/env bash
# From checkpoints to shipped models: makes again all that follows from new weights.
#
#   BASE=base.pt LITE=lite.pt RUN=4 ship.sh weights models fixtures vectors test      what one commit must hold together
#   CLIPS=FOLDER KODAK=FOLDER ship.sh rd loss                                          measurements in docs/, after it
#
# Without BASE or LITE that model stays. RUN: the run of EXPERIMENTS.md, for the model's provenance. FROM: what it began with.
# BIN: built nvcodec, rd, stamp and trim, made there if they are missing; a first call before the weights are there (ship.sh build) saves time.
# CACHE: points of rd that need not be measured again. What a person has to write: EXPERIMENTS.md, the prose beside BENCH.md's tables.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."
bin=${BIN:-bin} python=${PYTHON:-/usr/bin/python3} cache=${CACHE:-out/rd/peers.json}
mkdir -p out/ship out/rd

build() {
	for x in nvcodec:cmd/nvcodec rd:bench/rd stamp:convert/internal/stamp trim:convert/internal/trim; do
		[ -x "$bin/${x%%:*}" ] || scripts/go.sh build -o "$bin/${x%%:*}" "./${x#*:}"
	done
}

names() { # the models that have a new checkpoint
	if [ -n "${BASE:-}" ]; then echo nvc1-base; fi
	if [ -n "${LITE:-}" ]; then echo nvc1-lite; fi
}

checkpoint() { if [ "$1" = nvc1-base ]; then echo "$BASE"; else echo "$LITE"; fi; }

weights() {
	for n in $(names); do
		"$python" train/export.py "$(checkpoint "$n")" "models/src/$n.safetensors"
		"$bin/stamp" "models/src/$n.safetensors" "licence=the project's own; training material: models/LICENSES.md" \
			"provenance=train/EXPERIMENTS.md, run $RUN, from ${FROM:-the weights of run 1}"
	done
}

models() {
	for n in $(names); do
		"$bin/nvcodec" convert --overwrite "models/src/$n.safetensors" "models/$n.nvm" >"out/ship/$n.txt" && tail -1 "out/ship/$n.txt"
	done
}

# fixtures come from a CC0 clip: they hold samples of it
fixtures() {
	mkdir -p out/ship/fixtures
	for n in nvc1-base:40-hard:hard nvc1-lite:42:; do
		IFS=: read -r model tag more <<<"$n"
		"$python" train/import.py "models/src/$model.safetensors" out/ship/$model.pt
		"$python" train/fixtures.py out/ship/$model.pt testdata/monster.mp4 "${tag%-hard}" "out/ship/fixtures/$model-qp$tag.safetensors" $more >/dev/null
	done
	"$bin/trim" out/ship/fixtures convert/testdata/fixtures
}

vectors() { scripts/go.sh test ./codec -count 1 -run 'TestVectors' -update; }

# what knows the models' bytes; all else is make test's
test() { scripts/go.sh test -count 1 ./models ./convert ./codec ./cmd/nvcodec ./train; }

rd() {
	"$bin/rd" -models models/nvc1-base.nvm,models/nvc1-lite.nvm -cache "$cache" -kodak "$KODAK" -out out/rd/rd "$CLIPS" >/dev/null 2>out/rd/log
	"$python" train/tables.py rd <out/rd/rd.md docs/BENCH.md
	cp out/rd/rd.svg docs/rd.svg
}

loss() {
	for n in nvc1-base nvc1-lite; do
		"$bin/nvcodec" convert --json --overwrite --loss "$CLIPS" "models/src/$n.safetensors" "out/ship/$n.nvm" >"out/ship/$n-loss.json"
	done
	"$python" train/tables.py loss out/ship/nvc1-{base,lite}-loss.json docs/CONVERT.md
}

if [ $# = 0 ]; then sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; fi
build
for step in "$@"; do
	before=$SECONDS
	$step
	echo "ship.sh: $step, $((SECONDS - before)) s"
done
