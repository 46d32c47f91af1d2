//go:build cuda

#define NVCODEC_SM 90
#include "source_group.h" // changes with the kernels, so that they are compiled anew
#define NVCODEC_EMULATE
#include "../kernels/group.cu"
#include "entry.h"

K(group_lin_96, true) K(group_lin_64, true) K(group_gated_128, true)
K(group_looked_64, true) K(group_lookedsum_64, true)
K(group_joined_64, true) K(group_conv3_128, true) K(group_conv3_64, true)
K(group_lin16_64, true) K(group_looked16_64, true) K(group_lookedsum16_64, true) K(group_conv316_64, true) K(group_conv316_32, true)
K(group_looked_128x256, true) K(group_lookedsum_128x256, true)
K(group_lin_64x256, true) K(group_lin_64x512, true) K(group_lin_32x640, true) K(group_joined_64x512, true)
K(group_lin_64x320, true) K(group_looked_64x320, true) K(group_lookedsum_128x320, true)
K(group_lin_64x384, true) K(group_looked_64x384, true) K(group_lookedsum_64x384, true)
K(group_probe, true)
