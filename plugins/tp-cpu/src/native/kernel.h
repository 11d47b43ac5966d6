// The Python types Kernel and ViewKernel.
#pragma once
#include "run.h"

namespace tp {

constexpr int kFewTensors = 3;

struct Kernel {
  PyObject_HEAD
  vectorcallfunc call;
  const tpk_entry* entry;
  PyObject* name;
  const char* text;  // the name in UTF-8
  PyObject* op;      // NULL until bound
  PyObject* numpy;   // the function that finds the NumPy out-kernel, or NULL
  PyObject *slow, *slow_out, *fallback, *fallback_out;  // made by the hooks when first needed
  PyObject* writer;  // (name, None): what a mutated storage remembers
  Signature signature;
  PlanCache *plans, *out_plans;
  PyObject* weakrefs;
};

// kernel.out(out, *args): writes into preallocated tensors.
PyObject* kernel_out(PyObject* self, PyObject* const* args, Py_ssize_t count);
// Reads the operator's schema into `signature`; with `op` NULL the operator is looked up by the kernel's name.
bool bind_kernel(Kernel* kernel, PyObject* op);
bool read_signature(PyObject* op_or_name, PyObject** op, Signature* signature);
// A hook's product, made once and kept in `place`.
PyObject* made_once(PyObject** place, PyObject* hook, Kernel* kernel);
// The plan for these arguments, retained; NULL with an error set.
Plan* find_plan(PlanCache* cache, Arguments& arguments, PyObject* op, PyObject* planner, PyObject* const* args,
                int n_args, PyObject* const* outs, int n_outs, uint32_t flags);
// Arguments that only Python can read, made plain; NULL without an error if they cannot be.
PyObject* plain_arguments(PyObject* op, PyObject* const* args, int n_args);
PyObject* raise_status(const Kernel* kernel, int status, const Frame& frame);

}  // namespace tp
