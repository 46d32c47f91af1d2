#!/bin/sh
# Checks and times the CUDA backend on a machine with a device. First what is right, last how fast.
#
#   gpu-check.sh build FOLDER [MODEL.nvm …]   where Go is: the test program and the models go to FOLDER
#   gpu-check.sh run FOLDER                   where the device is: needs neither Go nor a compiler
#
# In the environment of run: STAGES, some of "resources check sanitize profile frames" (default: all, in this order);
# RUN, a pattern of tests for the stage check; FAMILY, whose profile and frames are timed (default sm_80); FRAMES, the
# frames of one timing (default 300). Logs go to $OUT, or FOLDER. The exit status is 0 when everything is right.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mode=${1:-}
folder=${2:-}
if [ -z "$folder" ] || { [ "$mode" != build ] && [ "$mode" != run ]; }; then
	echo "usage: gpu-check.sh build|run FOLDER" >&2
	exit 3
fi
shift 2

if [ "$mode" = build ]; then
	mkdir -p "$folder"
	rm -f "$folder"/*.nvm
	for model in "$@"; do cp "$model" "$folder/"; done
	folder=$(cd "$folder" && pwd)
	cd "$here"
	eval "$(./env.sh)"
	go test -c -tags cuda,noffmpeg,noembed -o "$folder/cuda.test" .
	{ git rev-parse HEAD && git status --porcelain -- . ; } >"$folder/commit" 2>/dev/null || echo unknown >"$folder/commit"
	ls -l "$folder"
	exit
fi

folder=$(cd "$folder" && pwd)
logs=${OUT:-$folder}
stages=${STAGES:-resources check sanitize profile frames}
family=${FAMILY:-sm_80}
test=$folder/cuda.test
failed=
wanted() { case " $stages " in *" $1 "*) echo "== $1" ;; *) return 1 ;; esac; }

nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv,noheader || true
echo "commit $(cat "$folder/commit")"
date -u
cd "$here"
NVCODEC_REQUIRE=cuda
NVCODEC_MODELS=$(ls "$folder"/*.nvm 2>/dev/null | paste -sd, -)
export NVCODEC_REQUIRE NVCODEC_MODELS

if wanted resources && command -v ptxas >/dev/null; then
	for file in kernels/*.ptx; do
		echo "-- $file"
		ptxas -v -arch=sm_90 -o /dev/null "$file" >"$logs/ptxas.log" 2>&1 || failed="$failed ptxas:$file"
		grep -E "error|warning" "$logs/ptxas.log" | head -n 20 || true
		# Kernels that spill, and what the convolutions use.
		awk '/Compiling/{name=$0; sub(/.*function ./, "", name); sub(/. for.*/, "", name)} /spill/{spill=$0} /registers/{
			if (name ~ /^lin_|^dwact_8/ || spill !~ / 0 bytes spill stores/) print name ":" $0 ";" spill}' "$logs/ptxas.log" | cut -c1-200
	done
fi
if wanted check; then
	"$test" -test.run "${RUN:-^Test(Absent|Source)\$|^Test(Act|Lin|LinActSum4|Lin16|Requantise|DWAct|Pointwise|Moves|Pictures|Latents|CoderEncode|CoderDecode|CoderDamage|PictureHash|SessionsAgree|Errors|Concurrent|NoAllocation)\$/impl=cuda|^Test(Widths|Models)\$//impl=cuda}" \
		-test.v -test.timeout 8m >"$logs/check.log" 2>&1 || failed="$failed check"
	grep -E "^ *--- |^(PASS|FAIL|ok|panic)|_test.go" "$logs/check.log" | cut -c1-300 | head -n 150
fi
if wanted sanitize && command -v compute-sanitizer >/dev/null; then
	# Not under racecheck, which runs kernels one by one: tests that block a stream on purpose, and stand still there.
	while read -r tool pattern; do
		timeout 200 compute-sanitizer --tool "$tool" --error-exitcode 9 "$test" -test.short -test.v -test.run "$pattern" >"$logs/$tool.log" 2>&1 </dev/null || failed="$failed $tool:$pattern"
		echo "-- $tool $pattern: $(grep -c -- '--- PASS' "$logs/$tool.log") passed; $(grep SUMMARY "$logs/$tool.log" || tail -n 1 "$logs/$tool.log")"
	done <<-END
		memcheck ^TestCoders\$/64x64/impl=cuda:0/(sm_80|sm_90a)|^TestCodersConcurrently\$/impl=cuda:0/(sm_80|sm_90a)
		memcheck ^TestSearch\$/impl=cuda:0
		memcheck ^Test(CoderDecode|CoderDamage)\$/impl=cuda:0
		memcheck ^Test(Errors|Concurrent)\$/impl=cuda:0/$family
		racecheck ^TestCoders\$/64x64/impl=cuda:0/sm_90a
		racecheck ^TestCoders\$/64x64/impl=cuda:0/sm_80
		racecheck ^TestSearch\$/impl=cuda:0
	END
fi
if wanted profile; then
	NVCODEC_PROFILE=1 "$test" -test.run "^TestProfile\$/impl=cuda:0/$family" -test.v >"$logs/profile.log" 2>&1 || failed="$failed profile"
	grep -E "us |kernels|products|copy of|--- |panic" "$logs/profile.log" | cut -c1-200 | head -n 120
fi
if wanted frames; then
	"$test" -test.run '^$' -test.bench "Frames/dir/model/size/impl=cuda:0,$family" -test.benchtime "${FRAMES:-300}x" -test.timeout 8m \
		>"$logs/frames.log" 2>&1 || failed="$failed frames"
	cat "$logs/frames.log"
fi
if [ -n "$failed" ]; then
	echo "FAILED:$failed"
	exit 1
fi
echo "ALL RIGHT"
