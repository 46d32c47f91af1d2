//go:build cuda

#define NVCODEC_SM 75
#include "fp16.h"
