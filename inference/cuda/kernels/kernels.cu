// The network's kernels, one translation unit for each family: NVCODEC_SM is 61 (dp4a), 75 or 80 (mma.sync).
// families: 61 75 80
#include "latent.cuh"
#include "lin.cuh"
#include "picture.cuh"
#include "pointwise.cuh"
