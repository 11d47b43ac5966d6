// Every file in family/ is compiled once per instruction set. Its code lives in namespace TPK_ISA_NS (isa_v2, isa_v3, ...).
// Rules for such files: no templates or inline functions from the standard library that leave a shared symbol behind
// (std::vector, std::sort, ...): the linker keeps one copy of them, maybe the one compiled for a newer processor.
// Use plain C and code in this namespace; <cmath>, <cstring>, <cstdint> functions are fine.
#pragma once
#include "tpk.h"

#ifndef TPK_ISA_SUFFIX
#define TPK_ISA_SUFFIX generic
#endif
#define TPK_JOIN_(a, b) a##b
#define TPK_JOIN(a, b) TPK_JOIN_(a, b)
#define TPK_ISA_NS TPK_JOIN(isa_, TPK_ISA_SUFFIX)

// One family's entries: TPK_FAMILY(rows) { {"softmax", softmax, TPK_CONTIGUOUS}, ... };   ends with {nullptr, nullptr, 0}
#define TPK_FAMILY(name) extern const tpk_entry TPK_JOIN(TPK_JOIN(tpk_family_##name, _), TPK_ISA_SUFFIX)[]; \
  const tpk_entry TPK_JOIN(TPK_JOIN(tpk_family_##name, _), TPK_ISA_SUFFIX)[] =
