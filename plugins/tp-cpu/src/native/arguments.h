// The arguments of one call, read from Python: what the kernel needs, and the words that identify the plan.
#pragma once
#include "native.h"

namespace tp {

// How an operator's parameter is passed; tp_cpu/planning.py `signature` writes these codes.
enum ParameterKind : uint8_t {
  kTensor = 0,
  kOperand = 1,     // a tensor or a number
  kTensors = 2,     // a list of tensors
  kAttribute = 3,
  kFloat = 4,       // an attribute; an int becomes a float
  kIgnored = 5,     // a device or a generator: it reaches the meta, not the kernel
  kWord = 6,        // an int of 64 bits, with or without sign (a seed)
  kKindMask = 15,
  kOptional = 16,
  kListed = 32,     // an attribute that is a list of ints: one int is a list of one
  kValueFree = 64,  // the plan does not depend on the value of a number
  kMutated = 128,   // a tensor (list) that the operator writes to
};

struct Signature {
  uint8_t* kinds = nullptr;
  int parameters = 0;
  int returns = 0;  // -1: as many as the meta says
  bool mutates = false;
  bool plain = false;  // a few tensors and nothing else, one result
};

enum InputState : uint8_t { kPresent, kAbsent, kNumber };

struct Input {
  PyObject* value;  // the tensor, or the number; borrowed, but see Arguments::owned
  uint8_t state;
  uint8_t kind;     // of its parameter
};

struct Arguments {
  Small<uint64_t, 48> words;
  Small<Input, 12> inputs;
  Small<tpk_attr, 16> attributes;
  bool strange = false;  // an attribute that only Python can read
  int owned_from = 0, owned_to = 0;  // inputs that came out of lists, which another thread may empty meanwhile
  Arguments() = default;
  Arguments(const Arguments&) = delete;
  ~Arguments() {
    for (int i = owned_from; i < owned_to; i++) Py_DECREF(inputs[i].value);
  }
};

// Reads all arguments. False with an error set if one cannot be an argument at all; runs no Python code.
bool gather(const Signature& signature, const char* op, PyObject* const* args, Arguments* out);

inline uint64_t hash_of(const uint64_t* words, int count) {
  uint64_t hash = uint64_t(count) * 0x9E3779B97F4A7C15u;
  for (int i = 0; i < count; i++) {
    hash = (hash ^ words[i]) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace tp
