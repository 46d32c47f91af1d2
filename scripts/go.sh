#!/usr/bin/env bash
# The go command for the FFmpeg at hand (go.mod for 5.1, go.ff7.mod and the tag ffmpeg7 for 7.x), with the CUDA backend
# where there is one: it needs nothing installed. NVC_TAGS adds tags, NVC_CUDA=0 leaves CUDA out.
set -euo pipefail
. "$(dirname "$0")/env.sh"
nvc_go_flags
flags=$(go env GOFLAGS)
if nvc_has_cuda; then
	eval "$("$nvc_root/inference/cuda/env.sh")"
	NVC_TAGS="cuda${NVC_TAGS:+,$NVC_TAGS}"
fi
# further tags join, since go takes the last -tags only
if [ -n "${NVC_TAGS:-}" ]; then
	case $flags in
	*-tags=*) export GOFLAGS="${flags/-tags=/-tags=$NVC_TAGS,}" ;;
	*) export GOFLAGS="-tags=$NVC_TAGS${flags:+ $flags}" ;;
	esac
fi
exec go "$@"
