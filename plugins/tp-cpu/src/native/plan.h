// A plan is what the core's Python meta said about one combination of layouts and attributes, ready to run.
#pragma once
#include "arguments.h"

namespace tp {

enum PlanState : uint8_t {
  kRun,          // as planned
  kSlow,         // promotion that only Python knows
  kUnsupported,  // the kernel said so
};

// A view without its data, and how far it reaches from its first element.
struct Region {
  tpk_tensor view;
  int64_t low, high;  // element offsets of the first and last element touched; high < low: none
  int32_t itemsize;
};

enum Preparation : uint8_t { kAsIs, kCopy, kCast };

struct PlanInput {
  Region region;
  Preparation preparation;
  bool write_back;
  tpk_tensor dense;  // the prepared input: contiguous, maybe of another dtype
  Py_ssize_t dense_bytes;
};

struct PlanOutput {
  Region region;
  PyObject* layout;
  Py_ssize_t nbytes;   // of a fresh storage
  tpk_tensor dense;    // of the out form: a contiguous stand-in for an out that the kernel cannot write to
};

struct Plan {
  int references;
  PlanState state;
  bool plain;        // tensors in, one tensor out, nothing to convert, small
  bool prepared;     // some input is copied or cast first
  bool release_gil;
  int compute;       // the dtype that numbers become, or -1
  int words, held, inputs, outputs;
  uint64_t hash;
  uint64_t* key;
  PyObject** objects;  // strong references to everything whose address is in the key, and to the outputs' layouts
  PlanInput* in;
  PlanOutput* out;
  int64_t* sizes;      // shapes and strides that the views point to
};

Plan* new_plan(const Arguments& arguments, uint64_t hash, PyObject* const* outs, int n_outs);
void release(Plan* plan);
inline Plan* retain(Plan* plan) {
  plan->references++;
  return plan;
}

// Fills in inputs and outputs from what Python's planner answered: None, or (layouts of the results, dtype code).
bool complete(Plan* plan, Arguments& arguments, PyObject* answer, uint32_t flags, bool out_form);

// Set-associative, four plans a set; grows to kMostSets, then the oldest plan of a set makes way.
class PlanCache {
 public:
  ~PlanCache() { clear(); }
  Plan* find(uint64_t hash, const uint64_t* words, int count) const {  // borrowed
    if (!sets_) return nullptr;
    Plan* const* set = plans_ + (hash & uint64_t(sets_ - 1)) * kWays;
    for (int way = 0; way < kWays; way++) {
      Plan* plan = set[way];
      if (!plan) return nullptr;
      if (plan->hash == hash && plan->words == count && same_words(plan->key, words, count)) return plan;
    }
    return nullptr;
  }
  static bool same_words(const uint64_t* a, const uint64_t* b, int count) {
    uint64_t differing = 0;
    for (int i = 0; i < count; i++) differing |= a[i] ^ b[i];
    return !differing;
  }
  bool insert(Plan* plan);
  void clear();
  int count() const;

 private:
  static constexpr int kWays = 4, kMostSets = 128;
  bool grow();
  bool place(Plan* plan);
  Plan** plans_ = nullptr;
  int sets_ = 0;
};

}  // namespace tp
