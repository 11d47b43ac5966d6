// ViewKernel: a view operator on the CPU. The meta says (layout, change of the offset); the answer is kept per plan.
#include "kernel.h"

namespace tp {

namespace {

struct ViewKernel {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject *op, *other;  // `other`: the core's own view kernel, for arguments that only Python can read
  Signature signature;
  PlanCache* plans;
  PyObject* weakrefs;
};

ViewKernel* as_view(PyObject* self) { return reinterpret_cast<ViewKernel*>(self); }

// A plan of a view has one output: the layout, and the change of the offset in the place of its size.
Plan* view_plan(ViewKernel* kernel, Arguments& arguments, PyObject* const* args, Py_ssize_t count) {
  const uint64_t hash = hash_of(arguments.words.items, arguments.words.count);
  Plan* plan = kernel->plans->find(hash, arguments.words.items, arguments.words.count);
  if (plan) return retain(plan);
  plan = new_plan(arguments, hash, nullptr, 0);
  if (!plan) return nullptr;
  PyObject* given = PyTuple_New(count);
  for (Py_ssize_t i = 0; given && i < count; i++) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(given, i, args[i]);
  }
  PyObject* const to_planner[] = {kernel->op, given};
  PyObject* answer = given ? PyObject_Vectorcall(core.plan_view, to_planner, 2, nullptr) : nullptr;
  Py_XDECREF(given);
  PyObject* layout;
  Py_ssize_t delta;
  plan->out = answer ? static_cast<PlanOutput*>(PyMem_RawCalloc(1, sizeof(PlanOutput))) : nullptr;
  if (!plan->out || !PyArg_ParseTuple(answer, "O!n:plan_view", core.layout, &layout, &delta) ||
      !kernel->plans->insert(plan)) {
    if (answer && !PyErr_Occurred()) PyErr_NoMemory();
    Py_XDECREF(answer);
    release(plan);
    return nullptr;
  }
  plan->outputs = 1;
  plan->out[0].layout = layout;
  plan->out[0].nbytes = delta;
  plan->state = kRun;
  Py_INCREF(layout);
  Py_DECREF(answer);
  return plan;
}

// What the new tensor is a view of, so that a recorded write to it reaches there; not for inputs that require grad,
// whose views the autograd engine records.
void note_base(PyObject* made, PyObject* tensor) {
  PyObject* keyset = slot(tensor, core.keyset);
  if (keyset != core.key && (!keyset || !PyLong_Check(keyset) || PyLong_AsLong(keyset) & core.autograd)) return;
  PyObject *base = slot(tensor, core.base), *old = slot(made, core.base);
  slot(made, core.base) = base && base != Py_None ? base : tensor;
  Py_INCREF(slot(made, core.base));
  Py_DECREF(old);
}

PyObject* view_of(PyObject* tensor, const Plan* plan) {
  PyObject *storage = slot(tensor, core.storage), *offset = slot(tensor, core.offset);
  if (!storage || !offset || !PyLong_Check(offset)) {
    raise_error(core.ArgumentError, "a tensor without storage or offset (its slots have been deleted)");
    return nullptr;
  }
  Py_INCREF(storage);
  const Py_ssize_t delta = plan->out[0].nbytes;
  if (!delta) {
    PyObject* made = new_tensor(storage, offset, plan->out[0].layout);
    if (made) note_base(made, tensor);
    return made;
  }
  const Py_ssize_t before = PyLong_AsSsize_t(offset);
  PyObject* moved = before == -1 && PyErr_Occurred() ? nullptr : PyLong_FromSsize_t(before + delta);
  if (!moved) {
    Py_DECREF(storage);
    return nullptr;
  }
  PyObject* made = new_tensor(storage, moved, plan->out[0].layout);
  Py_DECREF(moved);
  if (made) note_base(made, tensor);
  return made;
}

PyObject* view_call(PyObject* self, PyObject* const* args, size_t flags_and_count, PyObject* named) {
  ViewKernel* kernel = as_view(self);
  const Py_ssize_t count = PyVectorcall_NARGS(flags_and_count);
  if (count != kernel->signature.parameters || (named && PyTuple_GET_SIZE(named)) || !is_tensor(args[0])) {
    raise_error(core.ArgumentError, "%R takes a Tensor and all arguments of its schema by position", kernel->op);
    return nullptr;
  }
  Arguments arguments;
  if (!gather(kernel->signature, "view", args, &arguments)) return PyErr_Occurred() ? nullptr : PyErr_NoMemory();
  if (arguments.strange) return PyObject_Vectorcall(kernel->other, args, size_t(count), nullptr);
  Plan* plan = view_plan(kernel, arguments, args, count);
  if (!plan) return nullptr;
  PyObject* made = view_of(args[0], plan);
  release(plan);
  return made;
}

PyObject* view_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *op, *other;
  if (!PyArg_ParseTuple(args, "OO:ViewKernel", &op, &other) || !require_bound()) return nullptr;
  ViewKernel* made = as_view(type->tp_alloc(type, 0));
  if (!made) return nullptr;
  made->call = view_call;
  made->plans = new PlanCache;
  made->other = other;
  Py_INCREF(other);
  if (!read_signature(op, &made->op, &made->signature)) Py_CLEAR(made);
  else if (!made->signature.parameters || (made->signature.kinds[0] & kKindMask) > kOperand) {
    raise_error(core.ArgumentError, "%R: the first parameter of a view operator must be a Tensor", op);
    Py_CLEAR(made);
  }
  return reinterpret_cast<PyObject*>(made);
}

int view_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_view(self)->op);
  Py_VISIT(as_view(self)->other);
  return 0;
}

int view_clear(PyObject* self) {
  as_view(self)->plans->clear();
  Py_CLEAR(as_view(self)->op);
  return 0;  // `other` stays: a call may be running
}

void view_dealloc(PyObject* self) {
  ViewKernel* kernel = as_view(self);
  PyObject_GC_UnTrack(self);
  if (kernel->weakrefs) PyObject_ClearWeakRefs(self);
  view_clear(self);
  delete kernel->plans;
  PyMem_RawFree(kernel->signature.kinds);
  Py_XDECREF(kernel->other);
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject make_type() {
  PyTypeObject type = empty_type();
  type.tp_name = "tp_cpu._native.ViewKernel";
  type.tp_doc = "ViewKernel(op, other): a view operator with its plans kept; `other` takes what C cannot read.";
  type.tp_basicsize = sizeof(ViewKernel);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  type.tp_vectorcall_offset = offsetof(ViewKernel, call);
  type.tp_call = PyVectorcall_Call;
  type.tp_new = view_new;
  type.tp_dealloc = view_dealloc;
  type.tp_traverse = view_traverse;
  type.tp_clear = view_clear;
  type.tp_weaklistoffset = offsetof(ViewKernel, weakrefs);
  return type;
}

}  // namespace

PyTypeObject ViewKernelType = make_type();

}  // namespace tp
