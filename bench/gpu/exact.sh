#!/usr/bin/env bash
# Shows that a GPU computes the same bits as the CPU, with the real program: streams made on one are decoded on the
# other, over many clips, four sizes, both models and all frame types; every kernel family on a part; golden vectors.
#
#   exact.sh pack FILE.tar.xz CLIP...   where Go and ffmpeg are: program, tiling tool, and the clips' beginnings
#   exact.sh run FILE.tar.xz            where the device is: needs neither Go, nor FFmpeg, nor a network
#
# A CLIP may be a stream (.nvc) of a shipped model. In the environment of pack: PACK_FRAMES of each clip (default 6). In
# that of run: DEVICE (default cuda:0); FAMILIES (default all that the device runs); PART, some of "vectors small large
# families" (default all); SCALE, a percentage of the frames (default 100); LIMIT, seconds after which nothing more is
# begun (what is left out is said); OUT, a folder for logs. Each group's line comes when it is done. The models are those
# of models/. The exit status is 0 when everything was done and nothing differs.
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
		# small, since a pack has to travel, with even sides, which tiling wants
		ffmpeg -v error -nostdin -i "$clip" -frames:v "${PACK_FRAMES:-6}" -vf "scale='min(320,iw)':-2:flags=lanczos,crop='floor(iw/2)*2':'floor(ih/2)*2'" -pix_fmt yuv420p -f yuv4mpegpipe "$work/clips/$(basename "${clip%.*}").y4m"
	done
	tar -C "$work" -cf - . | xz -9 -T0 >"$pack" # programs have much in common, which only xz sees
	ls -l "$pack"
	exit
fi

tar -xf "$pack" -C "$work"
logs=${OUT:-$work}
device=${DEVICE:-cuda:0}
scale=${SCALE:-100}
parts=${PART:-vectors small large families}
cores=$(nproc)
export CUDA_CACHE_PATH=$work/cache
wanted() { case " $parts " in *" $1 "*) return 0 ;; esac; return 1; }
limit=${LIMIT:-100000}
left=""
step() { echo "-- $* (${SECONDS}s)" >&2; }
# late ends the beginning of new work, and remembers what is left out.
late() {
	[ $SECONDS -ge "$limit" ] || return 1
	left="$left $1"
}
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
		if late "vectors:$family"; then continue; fi
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
mkdir -p "$work/y4m" "$logs"
mv "$work"/clips/*.y4m "$work/y4m/" 2>/dev/null || true
if [ -n "$(ls "$work/clips")" ]; then "$nvcodec" decode -q --device cpu --workers "$cores" --format .y4m "$work/clips" "$work/y4m"; fi
clips=("$work"/y4m/*.y4m)
next=0
inputs() { # NAME SIZE FRAMES COUNT
	local i clip
	mkdir -p "$work/in/$1"
	for ((i = 0; i < $4; i++)); do
		clip=${clips[$((next++ % ${#clips[@]}))]}
		"$work/tile" -size "$2" -frames $(($3 * scale / 100 > 2 ? $3 * scale / 100 : 2)) "$clip" "$work/in/$1/$(basename "$clip")" &
		[ $((next % cores)) != 0 ] || wait
	done
	wait
}

# encode ON KERNELS WORKERS FOLDER GROUP… and verify ON KERNELS WORKERS FROM FOLDER GROUP…
encode() {
	local on=$1 kernels=$2 workers=$3 to=$4 name model options
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
echo "| size | model, options | clips | frames | intra | reset | streams that differ | hashes that differ, CPU's streams on GPU | GPU's on CPU | seconds |"
echo "|---|---|---|---|---|---|---|---|---|---|"
while read -r name size length count model options; do
	if late "$name"; then continue; fi
	began=$SECONDS
	inputs "$name" "$size" "$length" "$count"
	step "$name: encoding on both"
	encode "$device" auto 4 gpu "$name" &
	encode cpu auto "$cores" cpu "$name"
	wait
	step "$name: decoding each on the other"
	verify "$device" auto 4 cpu cpu-on-gpu "$name" &
	verify cpu auto "$cores" gpu gpu-on-cpu "$name"
	wait
	info=$("$nvcodec" info --json "$work/cpu/$name" </dev/null || true)
	n=$(echo "$info" | field frames | awk '{ s += $1 } END { print s + 0 }')
	intra=$(echo "$info" | field intra_frames | awk '{ s += $1 } END { print s + 0 }')
	resets=$(echo "$info" | field reset_frames | awk '{ s += $1 } END { print s + 0 }')
	s=$(compare "$work/cpu/$name" "$work/gpu/$name") a=$(wrong cpu-on-gpu "$name") b=$(wrong gpu-on-cpu "$name")
	echo "| $size | $model $options | $count | $n | $intra | $resets | $s | $a | $b | $((SECONDS - began)) |"
	[ $((s + a + b)) = 0 ] || bad=$((bad + 1))
	frames=$((frames + n)) files=$((files + count))
done <"$work/groups"
echo
echo "$frames frames of $((next < ${#clips[@]} ? next : ${#clips[@]})) distinct clips in $files files, in each direction."
echo

# ---- every kernel family on a part
if wanted families; then
	some=""
	for name in c d; do if [ -d "$work/cpu/$name" ]; then some="$some $name"; fi; done
	echo "| kernels | frames | streams that differ | hashes that differ |"
	echo "|---|---|---|---|"
	for family in $families; do
		if [ -z "$some" ] || late "$family"; then continue; fi
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
if [ -n "$left" ]; then
	echo "NOTHING DIFFERS so far; left out after $limit seconds:$left"
	exit 1
fi
echo "NOTHING DIFFERS"
