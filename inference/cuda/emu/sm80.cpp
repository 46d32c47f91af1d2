//go:build cuda

#define NVCODEC_SM 80
#define LAUNCH nvcodec_emu_launch_80
#include "family.h"
