//go:build cuda

#define NVCODEC_SM 80
#include "fp16.h"
