#!/bin/sh
# Prints what builds with the tag cuda need in their environment: eval "$(inference/cuda/env.sh)"
here=$(cd "$(dirname "$0")" && pwd)
echo "export CGO_CFLAGS=\"\${CGO_CFLAGS:--O2 -g} -I$here/include\" CGO_LDFLAGS=\"-L$here/lib \${CGO_LDFLAGS:--O2 -g}\""
