// Kernels without matrix products: the same code for every device.
// families: 61
#include "latent.cuh"
#include "picture.cuh"
#include "pointwise.cuh"
