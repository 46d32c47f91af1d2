#!/usr/bin/env bash
# Builds pinned sources of FFmpeg 7.1 with libx264 into .deps/ffmpeg, as shared libraries: for systems without a fitting
# FFmpeg. Needs a C compiler, make, git, curl, tar, xz; nasm makes it fast (x86), libdav1d is used for AV1 if it is there.
# Sources that lie in .deps/src already are used if their checksums fit.
set -euo pipefail
cd "$(dirname "$0")/.."
deps=$PWD/.deps
prefix=$deps/ffmpeg
ffmpeg=ffmpeg-7.1.1
ffmpeg_url=https://ffmpeg.org/releases/$ffmpeg.tar.xz
ffmpeg_sha256=733984395e0dbbe5c046abda2dc49a5544e7e0e1e2366bba849222ae9e3a03b1
x264_url=https://code.videolan.org/videolan/x264.git
x264_commit=31e19f92f00c7003fa115047ce50978bc98c3a0d # of its branch stable
jobs=${JOBS:-$(getconf _NPROCESSORS_ONLN)}

need=()
for tool in make git curl tar xz; do command -v $tool >/dev/null || need+=($tool); done
if [ ${#need[@]} -gt 0 ]; then echo "build-ffmpeg: please install: ${need[*]}" >&2; exit 1; fi
asm_x264=() asm_ffmpeg=()
case $(uname -m) in
x86_64 | i?86)
	if ! command -v nasm >/dev/null; then
		echo "build-ffmpeg: no nasm: building without assembly, which decodes several times slower" >&2
		asm_x264=(--disable-asm) asm_ffmpeg=(--disable-x86asm)
	fi
	;;
esac
av1=()
if pkg-config --exists dav1d 2>/dev/null; then av1=(--enable-libdav1d); fi

mkdir -p "$deps/src"
cd "$deps/src"
check() { echo "$ffmpeg_sha256  $ffmpeg.tar.xz" | sha256sum -c --status 2>/dev/null; }
if ! check; then
	curl -fL --retry 3 -o $ffmpeg.tar.xz $ffmpeg_url
	check || { echo "build-ffmpeg: checksum of $ffmpeg.tar.xz is wrong" >&2; exit 1; }
fi
rm -rf $ffmpeg
tar xf $ffmpeg.tar.xz
if [ ! -d x264 ]; then git clone -q $x264_url x264; fi
git -C x264 checkout -q $x264_commit # a commit's name is its checksum

(cd x264 && ./configure --prefix="$prefix" --enable-static --enable-pic --disable-cli --disable-opencl "${asm_x264[@]}" && make -j"$jobs" && make install)
(cd $ffmpeg && PKG_CONFIG_PATH=$prefix/lib/pkgconfig ./configure --prefix="$prefix" --enable-gpl --enable-libx264 --enable-shared --disable-static \
	--disable-doc --disable-programs --disable-network --disable-debug --enable-rpath "${asm_ffmpeg[@]}" "${av1[@]}" && make -j"$jobs" && make install)
rm -rf $ffmpeg
# Programs find the libraries without LD_LIBRARY_PATH.
for pc in "$prefix"/lib/pkgconfig/lib{av,sw}*.pc; do
	if ! grep -q rpath "$pc"; then sed -i.bak "s|^Libs:|Libs: -Wl,-rpath,$prefix/lib|" "$pc" && rm "$pc.bak"; fi
done
echo "build-ffmpeg: FFmpeg 7.1 with libx264 is in .deps/ffmpeg" >&2
