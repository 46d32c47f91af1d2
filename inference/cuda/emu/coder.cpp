//go:build cuda

#define NVCODEC_SM 61
#include "source_coder.h" // changes with the kernels, so that they are compiled anew
#define NVCODEC_EMULATE
#include "../kernels/coder.cu"
#include "entry.h"

K(coder_sum, true) K(coder_gather, true) K(coder_encode, true) K(coder_report, true)
K(coder_begin, true) K(coder_list, true) K(coder_decode, true) K(coder_scatter, true)
K(hash_rows, true) K(hash_sum, true)
