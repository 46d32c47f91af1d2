// Launches that begin before those ahead of them in their stream have ended.
#pragma once
#include "device.cuh"

// awaitLaunches stands ahead of everything that a kernel reads of what other launches wrote, and ahead of all that it writes.
// From compute capability 9.0 on a kernel that has it may begin while the launch before it ends, and lets the next one
// begin as early. Weights are no launch's, and may be fetched before.
DEVICE void awaitLaunches() {
#if NVCODEC_SM >= 90 && !defined(NVCODEC_EMULATE)
  asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}
