#!/bin/sh
# Prints what builds with the tag cuda need in their environment: eval "$(inference/cuda/env.sh)"
here=$(cd "$(dirname "$0")" && pwd)
# Go's build cache does not see include/cuda.h: its sum among the flags has packages compiled again when it changes.
sum=$(cksum <"$here/include/cuda.h" | cut -d' ' -f1)
echo "export CGO_CFLAGS=\"\${CGO_CFLAGS:--O2 -g} -I$here/include -DNVCODEC_CUDA_SUM=$sum\" CGO_LDFLAGS=\"-L$here/lib \${CGO_LDFLAGS:--O2 -g}\""
