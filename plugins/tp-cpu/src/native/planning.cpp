// Where C asks Python: signatures, plans, plain arguments, errors.
#include "kernel.h"

namespace tp {

namespace {

PyObject* tuple_of(PyObject* const* items, int count) {
  PyObject* made = PyTuple_New(count);
  for (int i = 0; made && i < count; i++) {
    Py_INCREF(items[i]);
    PyTuple_SET_ITEM(made, i, items[i]);
  }
  return made;
}

PyObject* ask(PyObject* planner, PyObject* op, PyObject* const* args, int n_args, PyObject* const* outs, int n_outs) {
  PyObject *given = tuple_of(args, n_args), *into = outs ? tuple_of(outs, n_outs) : nullptr, *answer = nullptr;
  PyObject* const to_planner[] = {op, given, into};
  if (given && (into || !outs)) answer = PyObject_Vectorcall(planner, to_planner, outs ? 3 : 2, nullptr);
  Py_XDECREF(given);
  Py_XDECREF(into);
  return answer;
}

}  // namespace

bool read_signature(PyObject* op_or_name, PyObject** op, Signature* signature) {
  if (!require_bound()) return false;
  PyObject* answer = PyObject_CallOneArg(core.signature, op_or_name);
  if (!answer) return false;
  PyObject *found, *kinds;
  int returns;
  uint8_t* copied = nullptr;
  if (PyArg_ParseTuple(answer, "OSi:signature", &found, &kinds, &returns)) {
    copied = static_cast<uint8_t*>(PyMem_RawMalloc(size_t(PyBytes_GET_SIZE(kinds)) + 1));
    if (!copied) PyErr_NoMemory();
  }
  if (copied) {
    memcpy(copied, PyBytes_AS_STRING(kinds), size_t(PyBytes_GET_SIZE(kinds)));
    PyMem_RawFree(signature->kinds);
    *signature = {copied, int(PyBytes_GET_SIZE(kinds)), returns, false, false};
    signature->plain = returns == 1 && signature->parameters >= 1 && signature->parameters <= kFewTensors;
    for (int i = 0; i < signature->parameters; i++) {
      signature->mutates |= (copied[i] & kMutated) != 0;
      signature->plain &= (copied[i] & kKindMask) <= kOperand && !signature->mutates;
    }
    PyObject* before = *op;
    Py_INCREF(found);
    *op = found;
    Py_XDECREF(before);
  }
  Py_DECREF(answer);
  return copied != nullptr;
}

bool bind_kernel(Kernel* kernel, PyObject* op) {
  return read_signature(op ? op : kernel->name, &kernel->op, &kernel->signature);
}

PyObject* made_once(PyObject** place, PyObject* hook, Kernel* kernel) {
  if (*place) return *place;
  PyObject* const args[] = {reinterpret_cast<PyObject*>(kernel), kernel->op};
  PyObject* made = PyObject_Vectorcall(hook, args, 2, nullptr);
  if (!made) return nullptr;
  if (*place) Py_DECREF(made);  // another thread was faster
  else *place = made;
  return *place;
}

Plan* find_plan(PlanCache* cache, Arguments& arguments, PyObject* op, PyObject* planner, PyObject* const* args,
                int n_args, PyObject* const* outs, int n_outs, uint32_t flags) {
  const uint64_t hash = hash_of(arguments.words.items, arguments.words.count);
  Plan* plan = cache->find(hash, arguments.words.items, arguments.words.count);
  if (plan) return retain(plan);
  plan = new_plan(arguments, hash, outs, n_outs);
  if (!plan) return nullptr;
  PyObject* answer = ask(planner, op, args, n_args, outs, n_outs);
  if (!answer || !complete(plan, arguments, answer, flags, outs != nullptr) || !cache->insert(plan)) {
    Py_XDECREF(answer);
    release(plan);
    return nullptr;
  }
  Py_DECREF(answer);
  return plan;
}

PyObject* plain_arguments(PyObject* op, PyObject* const* args, int n_args) {
  PyObject* plain = ask(core.plain, op, args, n_args, nullptr, 0);
  if (plain && PyTuple_CheckExact(plain) && PyTuple_GET_SIZE(plain) == n_args) return plain;
  Py_XDECREF(plain);
  return nullptr;
}

PyObject* raise_status(const Kernel* kernel, int status, const Frame& frame) {
  if (status == kOutOfMemory) return raise_out_of_memory(frame.wanted), nullptr;
  PyObject* message = PyUnicode_DecodeUTF8(frame.error, Py_ssize_t(strnlen(frame.error, 256)), "replace");
  PyObject* const args[] = {kernel->name, message};
  PyObject* error = message ? PyObject_Vectorcall(core.kernel_error, args, 2, nullptr) : nullptr;
  Py_XDECREF(message);
  if (error) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
    Py_DECREF(error);
  }
  return nullptr;
}

}  // namespace tp
