// The entropy coder and the picture's hash: the same code for every device.
// families: 61
#include "coder_decode.cuh"
#include "coder_encode.cuh"
#include "coder_gather.cuh"
#include "coder_hash.cuh"
