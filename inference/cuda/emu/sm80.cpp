//go:build cuda

#define NVCODEC_SM 80
#include "family.h"
