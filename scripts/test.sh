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
