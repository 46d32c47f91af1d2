// Makes kernels callable by name, with their parameters from an array of eight bytes each, as a launch does.
#pragma once
#include "block.h"
#include <stddef.h>
#include <utility>

template <class... A, size_t... I>
static void spread(void (*f)(A...), const uint64_t *args, std::index_sequence<I...>) {
  static_assert(((sizeof(A) == 8) && ...), "parameters have eight bytes");
  f((A)args[I]...);
}
template <auto F>
struct Entry;
template <class... A, void (*F)(A...)>
struct Entry<F> {
  static const int count = sizeof...(A);
  static void run(const uint64_t *args) { spread(F, args, std::index_sequence_for<A...>{}); }
};

// K makes a kernel known; fiber says that its threads wait for each other.
#define K(f, fiber) static KernelEntry entry_##f(NVCODEC_SM, #f, Entry<f>::count, fiber, Entry<f>::run);
