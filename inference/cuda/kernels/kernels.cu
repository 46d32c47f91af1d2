// The network's kernels that multiply matrices, one translation unit for each family: NVCODEC_SM is 61 (dp4a), 75 or 80 (mma.sync).
// families: 61 75 80
#include "lin.cuh"
