//go:build cuda

#define NVCODEC_SM 75
#define LAUNCH nvcodec_emu_launch_75
#include "family.h"
