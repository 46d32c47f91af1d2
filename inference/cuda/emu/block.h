#pragma once
#include <stdint.h>

// nvcodec_emu_run runs every block of a grid; fiber says that its threads wait for each other.
int nvcodec_emu_run(void (*f)(const uint64_t *), bool fiber, int grid, const uint64_t *args, bool backwards);
