//go:build cuda

#define NVCODEC_SM 61
#define LAUNCH nvcodec_emu_launch_61
#include "family.h"
