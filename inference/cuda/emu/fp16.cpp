//go:build cuda

#define NVCODEC_SM 75
#include "source_fp16.h" // changes with the kernels, so that they are compiled anew
#define NVCODEC_EMULATE
#include "../kernels/fp16.cu"
#include "entry.h"

K(lin_fp16_8, true) K(lin_fp16_1, true) K(lin_actsum4_fp16_8, true) K(lin_actsum4_fp16_1, true)
