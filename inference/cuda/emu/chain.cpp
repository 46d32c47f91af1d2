//go:build cuda

// The fused kernels, compiled for the host.
#include "source_chain.h" // changes with the kernels, so that they are compiled anew
#define NVCODEC_SM 80
#define NVCODEC_EMULATE
#include "../kernels/chain.cu"
#include "entry.h"

K(chain_64_1, true) K(chain_96_1, true) K(chain_128_1, true) K(chain_192_1, true) K(chain_256_1, true) K(chain_288_1, true)
K(chain_128_2, true) K(chain_192_2, true)
