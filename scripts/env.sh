# Sourced by the other scripts: picks the FFmpeg to build for.
#
#   nvc_ffmpeg_fits   true if pkg-config finds all libraries of a version that this source builds with
#   nvc_go_flags      sets GOFLAGS and GOCACHE for it
#   nvc_has_cuda      true where builds have the CUDA backend: linux/amd64 with cgo, unless NVC_CUDA=0

nvc_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ -d "$nvc_root/.deps/ffmpeg/lib/pkgconfig" ]; then
	export PKG_CONFIG_PATH="$nvc_root/.deps/ffmpeg/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
fi

nvc_codec_version() { pkg-config --modversion libavcodec 2>/dev/null; }

nvc_ffmpeg_fits() {
	pkg-config --exists libavutil libavcodec libavformat libavfilter libavdevice libswscale libswresample 2>/dev/null || return 1
	case $(nvc_codec_version) in
	59.* | 61.*) return 0 ;;
	esac
	return 1
}

nvc_go_flags() {
	local version cache stamp flags
	version=$(nvc_codec_version) || return 0 # pure Go builds need none
	case $version in
	61.*) flags=$(go env GOFLAGS); export GOFLAGS="-modfile=go.ff7.mod -tags=ffmpeg7${flags:+ $flags}" ;;
	esac
	# Go's build cache does not see that pkg-config points at another FFmpeg and would reuse objects of the one before, so
	# a second version gets a cache of its own.
	version="$version $(pkg-config --variable=libdir libavcodec)"
	cache=$(go env GOCACHE)
	stamp=$cache/nvcodec-ffmpeg
	if [ ! -e "$stamp" ]; then
		mkdir -p "$cache" && echo "$version" >"$stamp"
	elif [ "$(cat "$stamp")" != "$version" ]; then
		export GOCACHE="$cache-ffmpeg-${version%% *}"
	fi
}

nvc_has_cuda() {
	[ "${NVC_CUDA:-1}" != 0 ] && [ "$(go env GOOS GOARCH CGO_ENABLED | paste -sd' ')" = "linux amd64 1" ]
}
