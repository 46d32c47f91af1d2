#!/bin/sh
# Checks and times the CUDA backend on a machine with a device. First what is right, last how fast.
#
#   gpu-check.sh build FOLDER [MODEL.nvm …]   where Go is: the test program and the models go to FOLDER
#   gpu-check.sh run FOLDER                   where the device is: needs neither Go nor a compiler
#
# RUN (a pattern) limits the tests, QUICK=1 leaves out compute-sanitizer and the timings.
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
	CGO_CFLAGS="${CGO_CFLAGS:--O2} -I$here/include" CGO_LDFLAGS="-L$here/lib ${CGO_LDFLAGS:-}" \
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
	echo "== kernels and sessions against the CPU"
	"$test" -test.run "${RUN:-^Test(Absent|Act|Lin|LinActSum4|Lin16|Requantise|DWAct|Pointwise|Moves|Pictures|Latents|SessionsAgree|Widths|Errors|NoAllocation|Models)\$/impl=cuda|^TestAbsent\$|^Test(Widths|Models)\$//impl=cuda}" \
		-test.v -test.timeout 5m 2>&1 | grep -E "^\s*--- |^\S*(PASS|FAIL|ok|panic)|_test.go" | grep -v "emulat"
	if [ -n "${QUICK:-}" ]; then exit; fi
	if command -v compute-sanitizer >/dev/null; then
		for tool in memcheck racecheck; do
			echo "== compute-sanitizer $tool"
			timeout 150 compute-sanitizer --tool $tool --error-exitcode 9 "$test" -test.short \
				-test.run '^Test(Errors|SessionsAgree)$/impl=cuda:0' 2>&1 | tail -n 12 || echo "$tool: exit $?"
		done
	fi
	echo "== time by kernel"
	NVCODEC_PROFILE=1 "$test" -test.run '^TestProfile$/impl=cuda:0' -test.v 2>&1 | grep -E "us |kernels|---|panic" | head -n 150
	echo "== whole frames"
	"$test" -test.run '^$' -test.bench Frames -test.benchtime 300x -test.timeout 5m
	;;
*)
	echo "usage: gpu-check.sh build|run FOLDER" >&2
	exit 3
	;;
esac
