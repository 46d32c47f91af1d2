#!/usr/bin/env bash
# Shows that a GPU computes the same bits as the CPU, with the real program: streams made on one are decoded on the
# other, over many clips, four sizes, both models and all frame types; every kernel family on a part; golden vectors.
#
#   exact.sh pack FILE.tgz CLIP...   where Go and ffmpeg are: program, tiling tool, and the clips' beginnings as streams
#   exact.sh run FILE.tgz            where the device is: needs neither Go, nor FFmpeg, nor a network
#
# A CLIP may be a stream already (.nvc). In the environment of pack: PACK_FRAMES of each clip (default 24). In that of run: DEVICE (default cuda:0); FAMILIES
# (default all that the device runs); PART, some of "vectors small large families" (default all); SCALE, a percentage
# of the frames (default 100); OUT, a folder for logs. The models are those of models/. The exit status is 0 when
# nothing differs.
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
export NVCODEC_MODELS=$root/models
nvcodec=$work/nvcodec

if [ "$mode" = pack ]; then
	cd "$root"
	(eval "$(inference/cuda/env.sh)" && go build -tags cuda,noffmpeg,noembed -ldflags='-s -w' -o "$nvcodec" ./cmd/nvcodec)
	CGO_ENABLED=0 go build -tags noffmpeg -ldflags='-s -w' -o "$work/tile" ./bench/tile
	git rev-parse --short HEAD >"$work/commit" 2>/dev/null || echo unknown >"$work/commit"
	mkdir "$work/clips"
	for clip in "$@"; do
		case $clip in *.nvc) cp "$clip" "$work/clips/"; continue ;; esac
		# no larger than needed, with even sides, which tiling wants
		ffmpeg -v error -nostdin -i "$clip" -frames:v "${PACK_FRAMES:-24}" -vf "scale='min(640,iw)':-2:flags=lanczos,crop='floor(iw/2)*2':'floor(ih/2)*2'" -pix_fmt yuv420p -f yuv4mpegpipe - |
			"$nvcodec" encode -q --device cpu --qp 63 --no-scene-cut - "$work/clips/$(basename "${clip%.*}").nvc"
	done
	tar -C "$work" -cf - . | gzip -9 >"$pack"
	ls -l "$pack"
	exit
fi

tar -xzf "$pack" -C "$work"
logs=${OUT:-$work}
device=${DEVICE:-cuda:0}
scale=${SCALE:-100}
parts=${PART:-vectors small large families}
cores=$(nproc)
export CUDA_CACHE_PATH=$work/cache
wanted() { case " $parts " in *" $1 "*) return 0 ;; esac; return 1; }
step() { echo "-- $* (${SECONDS}s)" >&2; }
families=${FAMILIES:-$("$nvcodec" devices | awk -v d="$device" '$1 == d { for (i = 1; i <= NF; i++) if ($i ~ /^(sm_|fp16)/) { sub(/\*/, "", $i); print $i } }' | paste -sd' ')}
test -n "$families" || { "$nvcodec" devices; echo "FAILED: $device runs no kernels"; exit 1; }
echo "## Exactness on $("$nvcodec" devices | grep "^$device " | tr -s ' ')"
echo
echo "Commit $(cat "$work/commit"), $(date -u '+%Y-%m-%d %H:%M UTC'), $cores threads of $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)."
echo
bad=0
fail() { echo "**DIFFERS**: $*"; bad=$((bad + 1)); }
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }

# ---- golden vectors: outcome, exit code and pictures as they state them
if wanted vectors; then
	step golden vectors
	seen=0
	for text in "$root"/testdata/vectors/*.txt; do
		name=$(basename "$text" .txt)
		get() { sed -n "s/^$1: *//p" "$text"; }
		case $(get expect) in ok) want=0 ;; corrupt | truncated) want=10 ;; unsupported) want=11 ;; *) want=other ;; esac
		code=0
		"$nvcodec" decode --json --keep-damaged --overwrite --device "$device" "${text%.txt}.nvc" "$work/vector.yuv" >"$work/vector.json" 2>>"$logs/vectors.err" || code=$?
		[ $code = "$want" ] || fail "vector $name ends with exit code $code, want $want"
		if [ "$(get count)" != 0 ] && [ $want != 11 ]; then
			hash=$(field frames_sha256 <"$work/vector.json")
			[ "sha256:$hash" = "$(get frames)" ] || fail "vector $name decodes to $hash, want $(get frames)"
		fi
		seen=$((seen + 1))
	done
	for family in $families; do
		for on in "--device $device" "--device cpu"; do
			if [ "$on" = "--device cpu" ]; then kernels=auto; else kernels=$family; fi
			rm -rf "$work/back"
			"$nvcodec" decode --json --keep-damaged $on --kernels "$kernels" --format .yuv "$root/testdata/vectors" "$work/back" 2>>"$logs/vectors.err" |
				sed -n 's/.*"input":"\([^"]*\)".*"frames":\([0-9]*\).*"frames_sha256":"\([^"]*\)".*/\1 \2 \3/p' | sort >"$work/vectors.${on##* }" || true
		done
		cmp -s "$work/vectors.$device" "$work/vectors.cpu" || fail "vectors decode to other pictures with $family than on the cpu"
	done
	echo "$seen golden vectors decoded on $device, each in a process of its own; and by each of: $families."
	echo
fi

# ---- clips: name, size, frames, clips, model, options
groups() {
	if wanted small || wanted families; then
		echo "a 176x144 208 12 nvc1-base --qp 42 --intra-period 64 --reset-interval 16"
		echo "b 176x144 208 12 nvc1-lite --qp 30 --intra-period 50 --reset-interval 8"
		echo "c 320x192 150 12 nvc1-base --qp 63 --intra-period 96 --reset-interval 32"
		echo "d 320x192 150 12 nvc1-lite --qp 10 --low-delay --skip-threshold 0"
		echo "e 640x360 96 6 nvc1-base --qp 50 --reset-interval 24"
		echo "f 640x360 96 6 nvc1-lite --qp 42 --intra-period 32"
	fi
	if wanted large; then
		echo "g 1920x1080 130 3 nvc1-base --qp 42"
		echo "h 1920x1080 130 1 nvc1-lite --qp 63"
	fi
}
groups >"$work/groups"
if [ ! -s "$work/groups" ]; then
	[ $bad = 0 ] && echo "NOTHING DIFFERS" && exit 0
	exit 1
fi

step "clips to pictures"
"$nvcodec" decode -q --device cpu --workers "$cores" --format .y4m "$work/clips" "$work/y4m"
clips=("$work"/y4m/*.y4m)
next=0
while read -r name size frames count _; do
	mkdir -p "$work/in/$name" "$logs"
	for ((i = 0; i < count; i++)); do
		clip=${clips[$((next++ % ${#clips[@]}))]}
		"$work/tile" -size "$size" -frames $((frames * scale / 100 > 2 ? frames * scale / 100 : 2)) "$clip" "$work/in/$name/$(basename "$clip")" &
		[ $((next % cores)) != 0 ] || wait
	done
done <"$work/groups"
wait

# encode ON KERNELS WORKERS FOLDER GROUP… and verify ON KERNELS WORKERS FROM FOLDER GROUP…
encode() {
	local on=$1 kernels=$2 workers=$3 to=$4 name options
	shift 4
	while read -r name _ _ _ model options; do
		case " $* " in *" $name "*) ;; *) continue ;; esac
		"$nvcodec" encode -q --json --device "$on" --kernels "$kernels" --workers "$workers" --model "$model" $options "$work/in/$name" "$work/$to/$name" >"$logs/encode.$to.$name.json" 2>"$logs/encode.$to.$name.err" || echo "$to $name" >>"$work/failed"
	done <"$work/groups"
}
verify() {
	local on=$1 kernels=$2 workers=$3 from=$4 to=$5 name
	shift 5
	for name in "$@"; do
		"$nvcodec" verify -q --json --device "$on" --kernels "$kernels" --workers "$workers" "$work/$from/$name" >"$logs/verify.$to.$name.json" 2>"$logs/verify.$to.$name.err" || echo "$to $name" >>"$work/failed"
	done
}
hashes() { sed -n 's/.*"input":"[^"]*\/\([^/"]*\)".*"frames":\([0-9]*\).*"frames_sha256":"\([^"]*\)".*/\1 \2 \3/p' "$@" | sort; }
touch "$work/failed"
all=$(cut -d' ' -f1 "$work/groups" | paste -sd' ')

step encoding on both
encode "$device" auto 4 gpu $all &
encode cpu auto "$cores" cpu $all
step the CPU has encoded
wait
step decoding each on the other
verify "$device" auto 4 cpu cpu-on-gpu $all &
verify cpu auto "$cores" gpu gpu-on-cpu $all
step the CPU has decoded
wait

echo "| size | model, options | clips | frames | intra | reset | streams that differ | hashes that differ, CPU's streams on GPU | GPU's on CPU |"
echo "|---|---|---|---|---|---|---|---|---|"
frames=0 files=0
compare() { # STREAMS_A STREAMS_B: how many files differ
	local n=0 f
	for f in "$1"/*.nvc; do cmp -s "$f" "$2/$(basename "$f")" || n=$((n + 1)); done
	echo $n
}
# What is wrong with pictures: those whose hash in the stream is another one, and files whose pictures are not all there
# or not the other side's.
wrong() { # VERIFY_NAME GROUP
	local n
	n=$(grep -c 'picture hash' "$logs/verify.$1.$2.err" || true)
	hashes "$logs/verify.$1.$2.json" >"$work/got"
	hashes "$logs/verify.gpu-on-cpu.$2.json" >"$work/other"
	echo $((n + $(comm -3 "$work/got" "$work/other" | wc -l) + $(ls "$work/in/$2" | wc -l) - $(wc -l <"$work/got")))
}
while read -r name size _ count model options; do
	info=$("$nvcodec" info --json "$work/cpu/$name")
	n=$(echo "$info" | field frames | awk '{ s += $1 } END { print s }')
	intra=$(echo "$info" | field intra_frames | awk '{ s += $1 } END { print s }')
	resets=$(echo "$info" | field reset_frames | awk '{ s += $1 } END { print s }')
	s=$(compare "$work/cpu/$name" "$work/gpu/$name") a=$(wrong cpu-on-gpu "$name") b=$(wrong gpu-on-cpu "$name")
	echo "| $size | $model $options | $count | $n | $intra | $resets | $s | $a | $b |"
	[ $((s + a + b)) = 0 ] || bad=$((bad + 1))
	frames=$((frames + n)) files=$((files + count))
done <"$work/groups"
echo
echo "$frames frames of ${#clips[@]} distinct clips in $files files, in each direction."
echo

# ---- every kernel family on a part
if wanted families; then
	some="c d"
	echo "| kernels | frames | streams that differ | hashes that differ |"
	echo "|---|---|---|---|"
	for family in $families; do
		step "$family"
		encode "$device" "$family" 4 "gpu-$family" $some
		verify "$device" "$family" 4 cpu "$family" $some
		n=0 s=0 a=0
		for name in $some; do
			s=$((s + $(compare "$work/cpu/$name" "$work/gpu-$family/$name"))) a=$((a + $(wrong "$family" "$name")))
			n=$((n + $(hashes "$logs/verify.$family.$name.json" | awk '{ s += $2 } END { print s + 0 }')))
		done
		echo "| $family | $n | $s | $a |"
		[ $((s + a)) = 0 ] || bad=$((bad + 1))
	done
	echo
fi
if [ -s "$work/failed" ]; then
	fail "failed: $(paste -sd, "$work/failed")"
	for f in "$logs"/*.err; do head -n 3 "$f"; done
fi
step done
if [ $bad != 0 ]; then
	echo "FAILED: $bad differences"
	exit 1
fi
echo "NOTHING DIFFERS"
