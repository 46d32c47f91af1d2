// The network's kernels of one family, compiled for the host; NVCODEC_SM is set.
#include "source_kernels.h" // changes with the kernels, so that they are compiled anew
#define NVCODEC_EMULATE
#include "../kernels/kernels.cu"
#include "entry.h"

K(lin_8, true) K(lin_1, true) K(lin_actsum4_8, true) K(lin_actsum4_1, true) K(lin16, false)
