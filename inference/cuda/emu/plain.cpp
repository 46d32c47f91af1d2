//go:build cuda

#define NVCODEC_SM 61
#include "source_plain.h" // changes with the kernels, so that they are compiled anew
#define NVCODEC_EMULATE
#include "../kernels/plain.cu"
#include "entry.h"

#define R(f) K(f##_8, false) K(f##_1, false)
K(dwact_large, true) K(dwact_small, true) K(dwact_1, false)
R(actsum4) R(scale) R(requant) R(clamp) R(place) R(s2d) R(d2s) R(move)
K(compensate, false) K(pack, false) K(unpack, false)
K(z_tables, false) K(z_symbols, false) K(scale_index, false) K(y_tables, false) K(y_symbols, false) K(latent, false) K(unstep, false)
