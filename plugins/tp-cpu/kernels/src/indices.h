// Checking of index tensors before anything is written.
#pragma once
#include "isa.h"

namespace TPK_ISA_NS {

// The position of the first index outside [0, size), or -1; `step` is the distance between indices.
static inline int64_t first_outside(const int64_t* index, int64_t step, int64_t n, int64_t size) {
  const uint64_t bound = static_cast<uint64_t>(size);
  uint64_t outside = 0;
  if (step == 1)
    for (int64_t i = 0; i < n; i++) outside |= static_cast<uint64_t>(index[i]) >= bound;
  else
    for (int64_t i = 0; i < n; i++) outside |= static_cast<uint64_t>(index[i * step]) >= bound;
  if (!outside) return -1;
  int64_t i = 0;
  while (static_cast<uint64_t>(index[i * step]) < bound) i++;
  return i;
}

}  // namespace TPK_ISA_NS
