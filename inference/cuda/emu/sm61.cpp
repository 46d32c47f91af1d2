//go:build cuda

#define NVCODEC_SM 61
#include "family.h"
