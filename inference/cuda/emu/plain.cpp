//go:build cuda

#define NVCODEC_SM 61
#include "source_plain.h" // changes with the kernels, so that they are compiled anew
#define NVCODEC_EMULATE
#include "../kernels/plain.cu"
#include "entry.h"

K(actsum4_8, false) K(actsum4_1, false)
K(compensate, false)
K(dwact_large, true) K(dwact_small, true) K(dwact_1, false) K(dw_large, true) K(dw_small, true) K(dw_1, false)
K(gather_8, false) K(gather_1, false)
K(unpack, false)
K(code_z, false) K(y_tables_8, false) K(y_tables_1, false) K(latent_8, false) K(latent_1, false) K(unstep, false)
