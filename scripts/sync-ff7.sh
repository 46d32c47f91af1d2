#!/usr/bin/env bash
# Rewrites go.ff7.mod and go.ff7.sum: go.mod with the go-astiav for FFmpeg 7.x. Run it after every change of go.mod.
set -euo pipefail
cd "$(dirname "$0")/.."
astiav=v0.39.0
cp go.mod go.ff7.mod
cp go.sum go.ff7.sum
go get -modfile=go.ff7.mod "github.com/asticode/go-astiav@$astiav"
