//go:build cuda

#define NVCODEC_SM 61
#include "source_imported.h" // changes with the kernels, so that they are compiled anew
#define NVCODEC_EMULATE
#include "../kernels/imported.cu"
#include "entry.h"

#define R(f) K(f##_8, false) K(f##_1, false)
R(lookup) R(sum2) R(add)
K(pack_full, false) K(unpack_full, false) K(conv3, false) K(conv316, false)
