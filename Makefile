# Every target sets up what it needs. Results go to bin/ and out/, which git ignores.
#
#   make run      encode and decode a real clip, show rate, PSNR, speed, hashes
#   make build    bin/nvcodec
#   make test     everything that .ci/run checks
#   make test-arm64   the core packages and every golden vector on arm64, under qemu (a few minutes)
#   make fuzz     fuzz every parser for FUZZTIME each (default 60s)
#   make bench    speeds: frames, multiplications, symbols a second
#   make bench-gpu  a GPU: its ceilings, every kernel, whole frames, CLIPS="A B" (or a pack of bench/gpu/run.sh, PACK=...)
#   make rd       rate and PSNR beside x264 and x265 on the clips of a folder, CLIPS=...
#   make generate, generate-check   generated files: write them, or fail if they are not current

GO := scripts/go.sh
CLIP ?= testdata/monster.mp4
OUT ?= out/run
FUZZTIME ?= 60s
CLIPS ?=
RDFLAGS ?=
PACK ?=
GPUFLAGS ?=

.PHONY: build run test test-arm64 bench bench-gpu rd fmt vet fuzz generate generate-check setup clean

build: setup
	$(GO) build -o bin/nvcodec ./cmd/nvcodec

setup:
	@scripts/setup.sh

run: build
	@mkdir -p $(OUT)
	@echo "== encode $(CLIP)"
	@bin/nvcodec encode --overwrite $(CLIP) $(OUT)/clip.nvc
	@echo "== decode"
	@bin/nvcodec decode --overwrite $(OUT)/clip.nvc $(OUT)/clip.mp4
	@echo "== compare with the source"
	@bin/nvcodec compare --overwrite --png $(OUT)/side-by-side.png $(CLIP) $(OUT)/clip.nvc
	@bin/nvcodec info $(OUT)/clip.nvc
	@echo
	@echo "stream             $(OUT)/clip.nvc"
	@echo "to play            $(OUT)/clip.mp4"
	@echo "source beside it   $(OUT)/side-by-side.png"

test: setup
	@scripts/test.sh

test-arm64:
	@command -v qemu-aarch64-static >/dev/null || { echo 'needs qemu-aarch64-static (Debian: qemu-user-static)'; exit 2; }
	GOARCH=arm64 CGO_ENABLED=0 go test -short -exec qemu-aarch64-static ./yuv ./rans ./entropy ./inference/... ./convert/tables ./codec/motion
	GOARCH=arm64 CGO_ENABLED=0 go test -run TestVectors -exec qemu-aarch64-static ./codec

fmt:
	gofmt -w $$(git ls-files '*.go')

vet: setup
	$(GO) vet ./...

fuzz: setup
	@FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

bench: setup
	$(GO) test -run '^$$' -bench . ./rans ./entropy ./inference/... ./codec/... ./pipeio

bench-gpu:
	@test -n "$(CLIPS)$(PACK)" || { echo 'usage: make bench-gpu CLIPS="A B" [GPUFLAGS="-sizes 1920x1080 -qps 42"], or PACK=FILE.tar.xz of bench/gpu/run.sh pack'; exit 2; }
	@mkdir -p $(OUT)
	@if [ -z "$(PACK)" ]; then bench/gpu/run.sh pack $(OUT)/bench-gpu.tar.xz $(CLIPS) >/dev/null; fi
	@bench/gpu/run.sh run $(or $(PACK),$(OUT)/bench-gpu.tar.xz) $(GPUFLAGS)

rd: build
	@test -n "$(CLIPS)" || { echo 'usage: make rd CLIPS=FOLDER [RDFLAGS="-frames 33 -out docs/rd"]'; exit 2; }
	@command -v ffmpeg >/dev/null || { echo 'needs the ffmpeg program with libx264 and libx265 (Debian: ffmpeg)'; exit 2; }
	$(GO) run ./bench/rd $(RDFLAGS) $(CLIPS)

generate: setup
	go generate ./...

generate-check: setup
	@scripts/generate-check.sh

clean:
	rm -rf bin out
