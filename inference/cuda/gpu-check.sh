#!/bin/sh
# Checks and times the CUDA backend on a machine with a device. First what is right, last how fast.
#
#   gpu-check.sh build FOLDER [MODEL.nvm …]   where Go is: the test program and the models go to FOLDER
#   gpu-check.sh run FOLDER                   where the device is: needs neither Go nor a compiler
#
# RUN (a pattern) limits the tests, QUICK=1 leaves out compute-sanitizer and the timings. Logs go to $OUT, or FOLDER.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mode=$1
folder=$2
shift 2
case $mode in
build)
	mkdir -p "$folder"
	rm -f "$folder"/*.nvm
	folder=$(cd "$folder" && pwd)
	eval "$("$here/env.sh")"
	go test -C "$here" -c -tags cuda,noffmpeg,noembed -o "$folder/cuda.test" .
	for model in "$@"; do cp "$model" "$folder/"; done
	git -C "$here" rev-parse HEAD >"$folder/commit" 2>/dev/null || echo unknown >"$folder/commit"
	git -C "$here" status --porcelain -- . >>"$folder/commit" 2>/dev/null || true
	ls -l "$folder"
	;;
run)
	folder=$(cd "$folder" && pwd)
	echo "== machine"
	nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv,noheader || true
	echo "commit $(cat "$folder/commit")"
	date -u
	cd "$here"
	if command -v ptxas >/dev/null; then
		echo "== resources by ptxas $(ptxas --version | tail -n 1)"
		for file in kernels/*.ptx; do
			echo "-- $file"
			ptxas -v -arch=sm_90 -o /dev/null "$file" 2>&1 | grep -E "error|warning|Compiling|registers|spill" |
				sed -n '/error\|warning/p; /lin\|dwact_8/,/registers/p' | cut -c1-160 || true
		done
	fi
	models=$(ls "$folder"/*.nvm 2>/dev/null | paste -sd, -)
	export NVCODEC_REQUIRE=cuda NVCODEC_MODELS="$models"
	test=$folder/cuda.test
	logs=${OUT:-$folder}
	failed=
	echo "== kernels and sessions against the CPU"
	"$test" -test.run "${RUN:-^Test(Absent|Source)\$|^Test(Act|Lin|LinActSum4|Lin16|Requantise|DWAct|Pointwise|Moves|Pictures|Latents|SessionsAgree|Errors|Concurrent|NoAllocation)\$/impl=cuda|^Test(Widths|Models)\$//impl=cuda}" \
		-test.v -test.timeout 5m >"$logs/tests.log" 2>&1 || failed="tests"
	grep -E "^ *--- |^(PASS|FAIL|ok|panic)|_test.go" "$logs/tests.log" | cut -c1-300 | head -n 150
	if [ -n "${QUICK:-}" ]; then
		[ -z "$failed" ] && exit 0
		exit 1
	fi
	if command -v compute-sanitizer >/dev/null; then
		for tool in memcheck racecheck; do
			echo "== compute-sanitizer $tool"
			timeout 120 compute-sanitizer --tool $tool --error-exitcode 9 "$test" -test.short \
				-test.run '^Test(Errors|Concurrent)$/impl=cuda:0' >"$logs/$tool.log" 2>&1 || failed="$failed $tool"
			tail -n 6 "$logs/$tool.log"
		done
	fi
	echo "== time by kernel"
	NVCODEC_PROFILE=1 "$test" -test.run '^TestProfile$/impl=cuda:0' -test.v >"$logs/profile.log" 2>&1 || failed="$failed profile"
	grep -E "us |kernels|products|copy of|--- |panic" "$logs/profile.log" | cut -c1-200 | head -n 150
	echo "== whole frames"
	"$test" -test.run '^$' -test.bench Frames -test.benchtime 300x -test.timeout 5m 2>&1 | tee "$logs/frames.log"
	if [ -n "$failed" ]; then
		echo "FAILED: $failed"
		exit 1
	fi
	echo "ALL RIGHT"
	;;
*)
	echo "usage: gpu-check.sh build|run FOLDER" >&2
	exit 3
	;;
esac
