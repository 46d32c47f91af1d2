// The network's fused kernels.
// families: 80
#include "chain.cuh"
