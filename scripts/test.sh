#!/usr/bin/env bash
# Every test of the repository, in about the order of how soon it fails. Set-up (scripts/setup.sh) comes before.
set -euo pipefail
cd "$(dirname "$0")/.."
go=scripts/go.sh
. scripts/env.sh

step() { printf '== %s (%ds)\n' "$*" $SECONDS; }

step gofmt
unformatted=$(find . -name '*.go' -not -path './.deps/*' -exec gofmt -l {} +) # without git: it works in an unpacked archive
if [ -n "$unformatted" ]; then printf 'not gofmt-ed:\n%s\n' "$unformatted"; exit 1; fi

# Optional tools: without them some tests are skipped, and say so.
updated=""
apt_try() {
	command -v apt-get >/dev/null || return 0
	local sudo=""
	if [ "$(id -u)" != 0 ]; then sudo=sudo; fi
	if [ -z "$updated" ]; then $sudo apt-get update -qq; updated=yes; fi
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" || echo "not to be had here: $*"
}
require() { export NVCODEC_REQUIRE="$1${NVCODEC_REQUIRE:+,$NVCODEC_REQUIRE}"; }

cuda=""
if nvc_has_cuda; then
	step "C++ for the emulation of the CUDA kernels, clang-19 to compile them anew"
	command -v g++ >/dev/null || apt_try g++
	command -v clang-19 >/dev/null || apt_try clang-19
	# another clang's PTX may differ in words, so the comparison is only demanded of the one that made it
	if clang=$(clang-19 --version 2>/dev/null) && grep -qF "// compiler $(head -n 1 <<<"$clang")" inference/cuda/kernels/plain_sm61.ptx; then require generate; fi
	if command -v g++ >/dev/null; then cuda=yes; else export NVC_CUDA=0; fi
fi

step "Python with numpy and PyTorch, for train's tests"
python_is_there() { python3 -c 'import numpy, torch' 2>/dev/null || /usr/bin/python3 -c 'import numpy, torch' 2>/dev/null; }
# without OpenBLAS Debian's PyTorch multiplies forty times more slowly
python_is_there || apt_try python3-numpy python3-torch libopenblas0-pthread
if python_is_there; then require python; fi

step go vet
$go vet ./...

step tests
packages=$($go list ./...)
log=$(mktemp)
emulated=""
trap 'rm -f "$log"; if [ -n "$emulated" ]; then kill "$emulated" 2>/dev/null || true; fi' EXIT
if [ -n "$cuda" ]; then # the kernels under emulation, the PTX, the driver in software
	packages=$(grep -v '/inference/cuda$' <<<"$packages")
	$go test -short -timeout 20m ./inference/cuda >"$log" 2>&1 &
	emulated=$!
fi
$go test $packages
if [ -n "$emulated" ]; then
	wait "$emulated" || { cat "$log"; exit 1; }
	cat "$log"
	emulated=""
	step "what a machine with a GPU is given: CUDA without FFmpeg, models as files"
	NVC_TAGS=noffmpeg,noembed $go vet ./cmd/nvcodec ./bench/gpu ./inference/cuda
fi

step "without CUDA"
NVC_CUDA=0 $go vet ./cmd/nvcodec ./bench/gpu ./inference/...

step "without cgo, the core packages"
CGO_ENABLED=0 go build ./codec/... ./inference/... ./rans/... ./entropy/...

step "without FFmpeg: build, test what differs"
CGO_ENABLED=0 go vet -tags noffmpeg ./pipeio ./cmd/...
CGO_ENABLED=0 go test -short -tags noffmpeg ./pipeio ./cmd/...

step "purego kernels"
go test -short -tags purego ./inference/...

step "other processors"
GOARCH=arm64 CGO_ENABLED=0 go build -tags noffmpeg ./...
GOARCH=386 CGO_ENABLED=0 go build -tags noffmpeg ./...

step "race detector"
$go test -race -short ./pipeio ./batch ./codec ./inference/backends

step "fuzz smoke"
FUZZTIME=${FUZZTIME:-2000x} scripts/fuzz.sh

step done
