// Kernels without matrix products that only imported networks need: the same code for every device.
// families: 61 90a
#include "imported.cuh"
