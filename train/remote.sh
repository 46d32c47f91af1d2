#!/usr/bin/env bash
# Starts a run that goes on by itself, on a machine that is rented for minutes and reached by single commands.
#
#   remote.sh                                            only takes over the parts of the material that were copied there since
#   remote.sh NAME GPU MINUTES [option of train.py …]    and starts
#
# NAME: nvc1-base or nvc1-lite, whose weights in models/src the run begins with; or nvc1-base:RUN, several runs of one model. The material comes in parts:
# out/remote/part0, then part1 and so on: partN/train is trained on, part0/judge holds the held-out clips (parts.py makes them).
# Below ROOT (default /tmp/train), with RUN for NAME where it is given: the parts; log/NAME, what the run prints; ckpt/NAME-STEP.pt, averaged weights of
# every second minute, ckpt/NAME.pt the last, ckpt/NAME-best.pt what the judge liked best, ckpt/NAME-w.pt, -m1.pt, -m2.pt and .json, from which the same command goes on where the run was stopped.
# Nine tenths of the minutes go to windows of 9 or 17 inter frames at a falling rate, the last to fixed point; or PHASES says.
# With WATCH=1 parts that come later join in, but the data's order then depends on when, and the run cannot be repeated exactly.
# AFTER: a run's name; this one waits until that one is done. INIT: a checkpoint to begin with, in place of models/src.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=${ROOT:-/tmp/train} python=${PYTHON:-python3}
mkdir -p "$root/log" "$root/ckpt"
for part in "$here"/../out/remote/part*; do
	to=$root/${part##*/}
	if [ -d "$part" ] && [ ! -e "$to" ]; then cp -r "$part" "$to.part" && mv "$to.part" "$to"; fi # whole files only: a run may be looking
done
if [ $# = 0 ]; then ls -d "$root"/part*; exit; fi
model=${1%%:*} name=${1#*:} gpu=$2 minutes=$3
shift 3
case $model in
nvc1-base) width=192 ;;
nvc1-lite) width=128 ;;
*) echo "remote.sh: $model: want nvc1-base or nvc1-lite" >&2 && exit 2 ;;
esac
out=$root/ckpt/$name code=$root/code/$name # a folder of each run's own: the checkout may be replaced while it goes on, and two may start at once
mkdir -p "$code"
cp "$here"/*.py "$here/../convert/frames.safetensors" "$code/"
if [ -e "$out.json" ]; then
	begin=(--resume "$out")
else
	begin=(--init "$code/first.pt")
	if [ -n "${INIT:-}" ]; then cp "$INIT" "$code/first.pt"; else "$python" "$here/import.py" "$here/../models/src/$model.safetensors" "$code/first.pt"; fi
fi
phases=${PHASES:-$("$python" -c "m = $minutes; print('[[%g,[9,17],12,256,6e-5,4e-6],[%g,[9,17],6,256,4e-6,1e-6,\"int16\"]]' % (m * 0.9, m * 0.1))")}
cd "$code"
export CUDA_VISIBLE_DEVICES=$gpu PYTHONUNBUFFERED=1
before=
if [ -n "${AFTER:-}" ]; then before=$(cat "$root/log/$AFTER.pid"); fi
# shellcheck disable=SC2016 # the inner shell expands
setsid nohup bash -c 'while [ -n "$0" ] && kill -0 "$0" 2>/dev/null; do sleep 1; done; exec "$@"' "$before" "$python" train.py --data "$root"/part{0,1,2,3,4,5,6,7,8,9}/train ${WATCH:+--watch} --judge "$root/part0/judge" --out "$out.pt" "${begin[@]}" \
	--ci $width --cp $width --seed 7 --calibrate frames.safetensors --keep 2 --state "$out" --phases "$phases" "$@" >>"$root/log/$name" 2>&1 </dev/null &
echo $! >"$root/log/$name.pid"
echo "remote.sh: $name on GPU $gpu for $minutes minutes, process $!, $root/log/$name"
if [ -z "$before" ]; then { "$python" test_fast.py && "$python" test_kernels.py; } >>"$root/log/$name-kernels" 2>&1 || echo "remote.sh: the fused kernels fail their tests: $root/log/$name-kernels" >&2; fi
