// Convolutions on the matrix unit of compute capability 9.0.
// families: 90a
#include "group.cuh"
