// Kernels without matrix products: the same code for every device.
// families: 61
#include "compensate.cuh"
#include "dwact.cuh"
#include "latent.cuh"
#include "picture.cuh"
#include "pointwise.cuh"
