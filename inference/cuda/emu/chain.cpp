//go:build cuda

// The fused kernels, compiled for the host.
#include "source_chain.h" // changes with the kernels, so that they are compiled anew
#define NVCODEC_SM 80
#define NVCODEC_EMULATE
#include "../kernels/chain.cu"
#include "entry.h"

K(chain_64, true) K(chain_96, true) K(chain_128, true) K(chain_192, true) K(chain_256, true) K(chain_288, true)
