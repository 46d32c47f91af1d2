#pragma once
#include <stdint.h>

// A KernelEntry is how a kernel is found and called.
struct KernelEntry {
  int family;
  const char *name;
  int count;                     // parameters
  bool fiber;                    // its threads wait for each other
  void (*run)(const uint64_t *); // as one thread
  KernelEntry *next;
  KernelEntry(int family, const char *name, int count, bool fiber, void (*run)(const uint64_t *));
};

// nvcodec_emu_find finds a kernel of a family, or NULL.
const KernelEntry *nvcodec_emu_find(int family, const char *name);

// nvcodec_emu_run runs every block of a grid; -3: its threads wait for each other, -4: no such block.
int nvcodec_emu_run(const KernelEntry *k, int grid, int threads, int shared, const uint64_t *args, bool backwards);
