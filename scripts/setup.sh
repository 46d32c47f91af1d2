#!/usr/bin/env bash
# Installs what building needs and is missing: a C compiler, pkg-config and FFmpeg's development files; then fetches the Go
# modules. Does nothing, quickly, when all is there.
#
# Debian 12 and 13 have a fitting FFmpeg (5.1 and 7.1), which comes from the distribution. Anything else builds a pinned
# FFmpeg 7.1 with libx264 into .deps/ (scripts/build-ffmpeg.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh

say() { echo "setup: $*" >&2; }

sudo=""
if [ "$(id -u)" != 0 ]; then sudo=sudo; fi

updated=""
apt_install() {
	say "installing $* with apt-get"
	if [ -z "$updated" ]; then $sudo apt-get update -qq >&2; updated=yes; fi
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >&2
}

distribution=""
if [ -r /etc/os-release ]; then distribution=$(. /etc/os-release && echo "${ID:-}-${VERSION_ID:-}"); fi
can_apt=""
if command -v apt-get >/dev/null; then can_apt=yes; fi

# Go itself. Go 1.21 and later fetch the version that go.mod asks for by themselves.
go_is_old() { [[ $(go env GOVERSION 2>/dev/null) =~ ^go1\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -lt 21 ]; }
if ! command -v go >/dev/null && [ "$distribution" = debian-13 ]; then apt_install golang-go ca-certificates; fi
if ! command -v go >/dev/null || go_is_old; then
	say "Go 1.24 or later is needed: https://go.dev/dl (found: $(command -v go >/dev/null && go version || echo none))"
	exit 1
fi

missing=()
command -v gcc >/dev/null || command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v pkg-config >/dev/null || missing+=(pkg-config)
if [ ${#missing[@]} -gt 0 ]; then
	if [ -z "$can_apt" ]; then say "please install a C compiler and pkg-config"; exit 1; fi
	apt_install "${missing[@]}"
fi

libraries="libavutil libavcodec libavformat libavfilter libavdevice libswscale libswresample"
if ! nvc_ffmpeg_fits; then
	case $distribution in
	debian-12 | debian-13)
		packages=()
		for l in $libraries; do packages+=("$l-dev"); done
		apt_install "${packages[@]}"
		;;
	*)
		found=$(pkg-config --modversion libavcodec 2>/dev/null || echo none)
		say "no FFmpeg 5.1 or 7.x development files here (libavcodec: $found): building FFmpeg 7.1 with libx264 into .deps/, which takes a while"
		if [ -n "$can_apt" ]; then apt_install make git curl ca-certificates tar xz-utils nasm libdav1d-dev; fi
		scripts/build-ffmpeg.sh
		;;
	esac
	. scripts/env.sh
	if ! nvc_ffmpeg_fits; then say "FFmpeg's development files are still not found by pkg-config ($libraries)"; exit 1; fi
fi

scripts/go.sh mod download
# the generator of the kernels is a module of its own; a test runs it
(cd inference/kernel/_asm && go mod download)
