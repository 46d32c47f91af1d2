// Kernels without matrix products: the same code for every device.
// families: 61 90a
#include "actsum4.cuh"
#include "compensate.cuh"
#include "dwact.cuh"
#include "gather.cuh"
#include "latent.cuh"
#include "picture.cuh"
