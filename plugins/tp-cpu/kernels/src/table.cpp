// Which instruction set runs here, and the one table of kernels that follows from it.
#include <cstdlib>
#include <cstring>

#include "tpk.h"

namespace {

#if defined(__x86_64__)
#define TPK_SETS(X) X(v2) X(v3) X(v4)
#else
#define TPK_SETS(X) X(generic)
#endif
// Families in the order in which they are searched; one file in family/ each.
#define TPK_FAMILIES(X, isa) X(copy, isa) X(unary, isa) X(binary, isa) X(creation, isa) X(reduce, isa) X(scan, isa) \
  X(rows, isa) X(norm, isa) X(loss, isa) X(embedding, isa) X(matmul, isa) X(attention, isa) X(conv, isa) \
  X(index, isa) X(order, isa) X(optimizer, isa)

}  // namespace

#define DECLARE(family, isa) extern const tpk_entry tpk_family_##family##_##isa[];
#define DECLARE_SET(isa) TPK_FAMILIES(DECLARE, isa)
TPK_SETS(DECLARE_SET)

namespace {

#define POINTER(family, isa) tpk_family_##family##_##isa,
#define FAMILY_LIST(isa) const tpk_entry* const families_##isa[] = {TPK_FAMILIES(POINTER, isa) nullptr};
TPK_SETS(FAMILY_LIST)

struct Table {
  const char* isa;
  tpk_entry entries[512];
  int count;
};

void collect(Table* table, const char* isa, const tpk_entry* const* families) {
  table->isa = isa;
  table->count = 0;
  for (; *families; families++)
    for (const tpk_entry* entry = *families; entry->name; entry++)
      if (table->count < 512) table->entries[table->count++] = *entry;
}

Table make_table() {
  Table table;
#if defined(__x86_64__)
  __builtin_cpu_init();
  int level = 2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) level = 3;
  if (level == 3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd"))
    level = 4;
  const char* wanted = getenv("TP_CPU_ISA");
  if (wanted && wanted[0] == 'v' && wanted[1] >= '2' && wanted[1] <= '4' && !wanted[2] && wanted[1] - '0' < level)
    level = wanted[1] - '0';
  if (level == 4) collect(&table, "x86-64-v4", families_v4);
  else if (level == 3) collect(&table, "x86-64-v3", families_v3);
  else collect(&table, "x86-64-v2", families_v2);
#else
  collect(&table, "generic", families_generic);
#endif
  return table;
}

const Table& table() {
  static const Table chosen = make_table();
  return chosen;
}

}  // namespace

extern "C" const tpk_entry* tpk_find(const char* name) {
  const Table& all = table();
  for (int i = 0; i < all.count; i++)
    if (!strcmp(all.entries[i].name, name)) return &all.entries[i];
  return nullptr;
}

extern "C" const tpk_entry* tpk_entries(int* count) {
  const Table& all = table();
  *count = all.count;
  return all.entries;
}

extern "C" const char* tpk_isa(void) { return table().isa; }
