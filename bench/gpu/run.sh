#!/usr/bin/env bash
# Measures a GPU in one run and prints tables for docs/BENCH.md: the card's ceilings, every kernel, whole frames.
#
#   run.sh pack FILE.tar.xz CLIP CLIP   where Go and ffmpeg are: test program, benchmark and the clips' first frames
#   run.sh run FILE.tar.xz [FLAGS]      where the device is: needs neither Go, nor FFmpeg, nor a network
#
# FLAGS go to the benchmark (gpu -help), e.g. -sizes 1920x1080 -qps 42 -runs 3 -frames 100. In the environment of run:
# DEVICE (default cuda:0), FAMILY (default the highest that the device runs), STAGES, some of "ceilings network frames dcvcrt" (default all), OUT,
# a folder for the logs. dcvcrt is the published network's P-frame graph with random weights, network alone. The models are those of models/ in this repository.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
mode=${1:-} pack=${2:-}
if [ -z "$pack" ] || { [ "$mode" != pack ] && [ "$mode" != run ]; }; then
	sed -n '2,/^set/p' "$0" | grep '^#' | cut -c3- >&2
	exit 3
fi
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "$mode" = pack ]; then
	frames=${PACK_FRAMES:-12}
	for clip in "$@"; do
		ffmpeg -v error -nostdin -i "$clip" -frames:v "$frames" -pix_fmt yuv420p "$work/$(basename "${clip%.*}").y4m"
	done
	cd "$root"
	eval "$(inference/cuda/env.sh)"
	go build -tags cuda,noffmpeg,noembed -ldflags='-s -w' -o "$work/gpu" ./bench/gpu
	go test -c -tags cuda,noffmpeg,noembed -ldflags='-s -w' -o "$work/cuda.test" ./inference/cuda
	commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
	if [ -n "$(git status --porcelain -- inference codec entropy rans bench 2>/dev/null)" ]; then commit="$commit with changes"; fi
	echo "$commit" >"$work/commit"
	tar -C "$work" -cf - . | xz -9 -T0 >"$pack" # programs have much in common, which only xz sees
	ls -l "$pack"
	exit
fi

tar -xf "$pack" -C "$work"
logs=${OUT:-$work}
device=${DEVICE:-cuda:0}
stages=${STAGES:-ceilings network frames dcvcrt}
wanted() { case " $stages " in *" $1 "*) return 0 ;; esac; return 1; }
export NVCODEC_MODELS=$root/models
family=${FAMILY:-$("$work/gpu" -device "$device" -family)}
files=$(ls "$NVCODEC_MODELS"/*.nvm | paste -sd,)
echo "## $("$work/gpu" -describe | grep "^$device:" || "$work/gpu" -describe)"
echo
echo "Commit $(cat "$work/commit"), $(date -u '+%Y-%m-%d %H:%M UTC'), kernels $family, $(nproc) threads of $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)."
echo "Command: \`bench/gpu/run.sh run ${pack##*/} $*\`"
echo
cd "$root/inference/cuda"
if wanted ceilings; then
	NVCODEC_MODELS=$files NVCODEC_PROFILE=1 "$work/cuda.test" -test.run "^TestProfile\$/impl=$device/$family\$" -test.v >"$logs/profile.log" 2>&1 || { tail -n 20 "$logs/profile.log"; echo "FAILED: profile"; exit 1; }
	grep -q 'copy of' "$logs/profile.log" || { cat "$logs/profile.log"; echo "FAILED: no profile of $device $family"; exit 1; }
	grep -E 'copy of|positions:' "$logs/profile.log" | sed 's/^ *[a-z_]*.go:[0-9]*: /* ceiling: /'
	echo
	echo '```'
	grep -E ' us |in kernels' "$logs/profile.log" | sed 's/^ *[a-z_]*.go:[0-9]*: //' | awk '/in kernels/ { n = 0; print ""; } n++ < 26'
	echo '```'
	echo
fi
network=()
if wanted network; then
	NVCODEC_MODELS=$files "$work/cuda.test" -test.run '^$' -test.bench "^BenchmarkNetwork\$/dir/model/size/impl=$device,$family\$" -test.benchtime "${NETWORK_FRAMES:-300}x" -test.count 5 >"$logs/network.log" 2>&1 || { tail -n 20 "$logs/network.log"; echo "FAILED: network"; exit 1; }
	network=(-network "$logs/network.log")
fi
if wanted frames; then
	"$work/gpu" -device "$device" -kernels "$family" "${network[@]}" "$@" "$work"/*.y4m 2>"$logs/frames.err" || { cat "$logs/frames.err"; echo "FAILED: frames"; exit 1; }
elif [ ${#network[@]} -gt 0 ]; then
	grep frames/s "$logs/network.log"
fi
if wanted dcvcrt; then
	"$work/cuda.test" -test.run '^$' -test.bench "^BenchmarkDCVCRT\$/dir/weights/size=1920x1088/impl=$device,$family\$" -test.benchtime 100x -test.count 3 >"$logs/dcvcrt.log" 2>&1 || { tail -n 20 "$logs/dcvcrt.log"; echo "FAILED: dcvcrt"; exit 1; }
	echo
	echo "DCVC-RT's P-frame graph, network alone, frames a second, three runs of 100 frames:"
	echo
	sed -n 's/^BenchmarkDCVCRT.dir=\([a-z]*\).weights=\([a-z0-9]*\).size=\([0-9x]*\).*[[:space:]]\([0-9.]*\) frames.s.*/* \1 a16\2 \3: \4/p' "$logs/dcvcrt.log"
fi
