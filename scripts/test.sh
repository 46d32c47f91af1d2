#!/usr/bin/env bash
# Every test of the repository, in about the order of how soon it fails. Set-up (scripts/setup.sh) comes before.
set -euo pipefail
cd "$(dirname "$0")/.."
go=scripts/go.sh

step() { printf '== %s (%ds)\n' "$*" $SECONDS; }

step gofmt
unformatted=$(find . -name '*.go' -not -path './.deps/*' -exec gofmt -l {} +) # without git: it works in an unpacked archive
if [ -n "$unformatted" ]; then printf 'not gofmt-ed:\n%s\n' "$unformatted"; exit 1; fi

step go vet
$go vet ./...

step "Python with numpy and PyTorch, for train's tests"
python_is_there() { python3 -c 'import numpy, torch' 2>/dev/null || /usr/bin/python3 -c 'import numpy, torch' 2>/dev/null; }
if ! python_is_there && command -v apt-get >/dev/null; then
	sudo=""
	if [ "$(id -u)" != 0 ]; then sudo=sudo; fi
	$sudo apt-get update -qq
	# without OpenBLAS Debian's PyTorch multiplies forty times more slowly
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends python3-numpy python3-torch libopenblas0-pthread || echo "not to be had here: some of them are skipped"
fi
if python_is_there; then export NVCODEC_REQUIRE="python${NVCODEC_REQUIRE:+,$NVCODEC_REQUIRE}"; fi

step tests
$go test ./...

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
$go test -race -short ./pipeio ./batch ./codec

step "fuzz smoke"
FUZZTIME=${FUZZTIME:-2000x} scripts/fuzz.sh

step done
