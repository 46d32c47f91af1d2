//go:build cuda

#define NVCODEC_SM 61
#include "source_motion.h" // changes with the kernels, so that they are compiled anew
#define NVCODEC_EMULATE
#include "../kernels/motion.cu"
#include "entry.h"

K(pad, false)
K(cut_eighth, false) K(cut_detail, false) K(cut_full, true) K(cut_sum, true)
K(search_begin, false) K(search_full, true) K(search_phases, false) K(search_whole, true) K(search_start, true) K(search_refine, true) K(search_choose, true)
