// The kernels of one family, compiled for the host; NVCODEC_SM and LAUNCH are set.
#include "source.h" // changes with the kernels, so that they are compiled anew
#define NVCODEC_EMULATE
#include "../kernels/kernels.cu"
#include "block.h"
#include <string.h>
#include <utility>

// spread calls a kernel with its parameters from an array of eight bytes each, as a launch does.
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

// LAUNCH runs a kernel, or without args returns how many it takes.
extern "C" int LAUNCH(const char *name, int grid, const uint64_t *args, int count, int backwards) {
#define K(f, fiber)                                   \
  if (!strcmp(name, #f)) {                            \
    if (!args) return Entry<f>::count;                \
    if (count != Entry<f>::count) return -2;          \
    return nvcodec_emu_run(Entry<f>::run, fiber, grid, args, backwards); \
  }
#define R(f) K(f##_8, false) K(f##_1, false)
  K(lin_8, true) K(lin_1, true) K(lin_actsum4_8, true) K(lin_actsum4_1, true) K(lin16, false)
  R(dwact) R(actsum4) R(scale) R(requant) R(clamp) R(place) R(s2d) R(d2s) R(move)
  K(compensate, false) K(pack, false) K(unpack, false)
  K(z_tables, false) K(z_symbols, false) K(scale_index, false) K(y_tables, false) K(y_symbols, false) K(latent, false) K(unstep, false)
#undef R
#undef K
  return -1;
}
