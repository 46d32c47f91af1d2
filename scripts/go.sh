#!/usr/bin/env bash
# The go command for the FFmpeg at hand: go.mod for 5.1, go.ff7.mod and the tag ffmpeg7 for 7.x.
set -euo pipefail
. "$(dirname "$0")/env.sh"
nvc_go_flags
flags=$(go env GOFLAGS)
# further tags join, since go takes the last -tags only
if [ -n "${NVC_TAGS:-}" ]; then
	case $flags in
	*-tags=*) export GOFLAGS="${flags/-tags=/-tags=$NVC_TAGS,}" ;;
	*) export GOFLAGS="-tags=$NVC_TAGS${flags:+ $flags}" ;;
	esac
fi
exec go "$@"
