// Convolutions on FP16 matrix units, for devices whose units for bytes are slow.
// families: 75
#include "fp16.cuh"
