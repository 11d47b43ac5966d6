// Kernel: one native kernel as a Python callable. `kernel(*args)` is the whole operator (meta, allocation, compute,
// wrapping), `kernel.out(out, *args)` the part that computes.
#include "kernel.h"

namespace tp {

namespace {

Kernel* as_kernel(PyObject* self) { return reinterpret_cast<Kernel*>(self); }

bool allocate_outputs(const Plan* plan, Frame* frame, Small<PyObject*, 4>* storages) {
  if (!frame->out.grow(plan->outputs) || !storages->grow(plan->outputs)) return PyErr_NoMemory(), false;
  for (int i = 0; i < plan->outputs; i++) {
    PyObject* storage = new_storage(plan->out[i].nbytes);
    if (!storage) return false;
    storages->items[storages->count++] = storage;
    frame->out[i] = plan->out[i].region.view;
    frame->out[i].data = reinterpret_cast<Storage*>(storage)->data;
  }
  return true;
}

PyObject* wrap_outputs(const Kernel* kernel, const Plan* plan, Small<PyObject*, 4>* storages) {
  const int count = storages->count;
  storages->count = 0;  // each wrapping takes its reference over
  if (count == 1 && kernel->signature.returns == 1)
    return new_tensor(storages->items[0], core.zero, plan->out[0].layout);
  if (kernel->signature.returns == 0) Py_RETURN_NONE;
  PyObject* results = PyTuple_New(count);
  for (int i = 0; i < count; i++) {
    PyObject* one = results ? new_tensor(storages->items[i], core.zero, plan->out[i].layout) : nullptr;
    if (!results) Py_DECREF(storages->items[i]);
    else if (one) PyTuple_SET_ITEM(results, i, one);
    else Py_CLEAR(results);
  }
  return results;
}

void count_writes(const Kernel* kernel, Arguments& arguments) {
  for (int i = 0; i < arguments.inputs.count; i++) {
    const Input& given = arguments.inputs[i];
    if (given.state != kPresent || !(given.kind & kMutated)) continue;
    PyObject* held = slot(given.value, core.storage);
    if (!held || Py_TYPE(held) != &StorageType) continue;  // replaced by another thread meanwhile
    Storage* storage = reinterpret_cast<Storage*>(held);
    storage->version++;
    if (storage->writer == kernel->writer) continue;
    PyObject* before = storage->writer;
    Py_XINCREF(kernel->writer);
    storage->writer = kernel->writer;
    Py_XDECREF(before);
  }
}

// What the call becomes when the kernel cannot do it; `hook` makes the other way when it is first needed.
PyObject* call_other(Kernel* kernel, PlanState why, PyObject* const* args, Py_ssize_t count) {
  PyObject* other = why == kSlow ? made_once(&kernel->slow, core.slow, kernel)
                                 : made_once(&kernel->fallback, core.fallback, kernel);
  if (!other) return nullptr;
  Py_INCREF(other);
  PyObject* result = PyObject_Vectorcall(other, args, size_t(count), nullptr);
  Py_DECREF(other);
  return result;
}

PyObject* run_call(Kernel* kernel, Plan* plan, Arguments& arguments, PyObject* const* args, Py_ssize_t count) {
  Frame frame;
  const Located located = locate_inputs(kernel->text, plan, arguments, &frame);
  if (located == kFailed) return PyErr_Occurred() ? nullptr : PyErr_NoMemory();
  if (located == kNoFit) return call_other(kernel, kSlow, args, count);
  Small<PyObject*, 4> storages;
  PyObject* result = nullptr;
  if (allocate_outputs(plan, &frame, &storages)) {
    const int status = execute(kernel->entry, plan, arguments, &frame);
    if (status == TPK_OK) {
      if (kernel->signature.mutates) count_writes(kernel, arguments);
      return wrap_outputs(kernel, plan, &storages);
    }
    if (status == TPK_UNSUPPORTED) {
      plan->state = kUnsupported;
      result = call_other(kernel, kUnsupported, args, count);
    } else {
      result = raise_status(kernel, status, frame);
    }
  }
  for (int i = 0; i < storages.count; i++) Py_DECREF(storages[i]);
  return result;
}

PyObject* call_gathered(Kernel* kernel, Arguments& arguments, PyObject* const* args, Py_ssize_t count) {
  Plan* plan = find_plan(kernel->plans, arguments, kernel->op, core.plan, args, int(count), nullptr, 0,
                         kernel->entry->flags);
  if (!plan) return nullptr;
  PyObject* result = plan->state == kRun ? run_call(kernel, plan, arguments, args, count)
                                         : call_other(kernel, plan->state, args, count);
  release(plan);
  return result;
}

PyObject* call_strange(Kernel* kernel, PyObject* const* args, Py_ssize_t count) {
  PyObject* plain = plain_arguments(kernel->op, args, int(count));
  if (!plain) return PyErr_Occurred() ? nullptr : call_other(kernel, kUnsupported, args, count);
  Arguments arguments;
  PyObject* const* items = &PyTuple_GET_ITEM(plain, 0);
  PyObject* result = nullptr;
  if (!gather(kernel->signature, kernel->text, items, &arguments)) {
    if (!PyErr_Occurred()) PyErr_NoMemory();
  } else if (arguments.strange) {
    result = call_other(kernel, kUnsupported, args, count);
  } else {
    result = call_gathered(kernel, arguments, items, count);
  }
  Py_DECREF(plain);
  return result;
}

// Most calls: a few tensors in, one small tensor out, nothing to convert. NULL without an error leaves the call to the
// general way, also when the kernel declines or complains: it does so again there.
PyObject* call_plain(Kernel* kernel, PyObject* const* args, int count) {
  uint64_t words[kFewTensors];
  for (int i = 0; i < count; i++) {
    PyObject* layout = is_tensor(args[i]) ? slot(args[i], core.layout_of) : nullptr;
    if (!layout) return nullptr;
    words[i] = uint64_t(reinterpret_cast<uintptr_t>(layout));
  }
  Plan* plan = kernel->plans->find(hash_of(words, count), words, count);
  if (!plan || !plan->plain) return nullptr;
  tpk_tensor in[kFewTensors], out = plan->out[0].region.view;
  for (int i = 0; i < count; i++) {
    char* data = nullptr;
    in[i] = plan->in[i].region.view;
    if (!locate(kernel->text, args[i], plan->in[i].region, &data)) return nullptr;
    in[i].data = data;
  }
  PyObject* storage = new_storage(plan->out[0].nbytes);
  if (!storage) return nullptr;
  out.data = reinterpret_cast<Storage*>(storage)->data;
  char error[256];
  const tpk_call call = {in, &out, nullptr, count, 1, 0, error};
  if (kernel->entry->fn(&call) != TPK_OK) {
    Py_DECREF(storage);
    return nullptr;
  }
  retain(plan);  // making the tensor may collect garbage, and that may run anything
  PyObject* made = new_tensor(storage, core.zero, plan->out[0].layout);
  release(plan);
  return made;
}

PyObject* kernel_call(PyObject* self, PyObject* const* args, size_t flags_and_count, PyObject* named) {
  Kernel* kernel = as_kernel(self);
  const Py_ssize_t count = PyVectorcall_NARGS(flags_and_count);
  if (!kernel->op && !bind_kernel(kernel, nullptr)) return nullptr;
  if (count != kernel->signature.parameters || (named && PyTuple_GET_SIZE(named))) {
    raise_error(core.ArgumentError, "the kernel of %U takes all %d arguments of its schema by position, got %zd",
                kernel->name, kernel->signature.parameters, count);
    return nullptr;
  }
  if (kernel->signature.plain) {
    PyObject* made = call_plain(kernel, args, int(count));
    if (made || PyErr_Occurred()) return made;
  }
  Arguments arguments;
  if (!gather(kernel->signature, kernel->text, args, &arguments))
    return PyErr_Occurred() ? nullptr : PyErr_NoMemory();
  return arguments.strange ? call_strange(kernel, args, count) : call_gathered(kernel, arguments, args, count);
}

// ---- the type ----

PyObject* kernel_new(PyTypeObject* type, PyObject* args, PyObject* named) {
  static const char* names[] = {"name", "numpy", "native_name", nullptr};
  PyObject *name, *numpy = Py_None;
  const char* native_name = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, named, "U|Oz:Kernel", const_cast<char**>(names), &name, &numpy, &native_name))
    return nullptr;
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  if (!native_name) native_name = text;
  const tpk_entry* entry = tpk_find(native_name);
  if (!entry) return PyErr_Format(PyExc_LookupError, "there is no native kernel named %s", native_name);
  Kernel* made = reinterpret_cast<Kernel*>(type->tp_alloc(type, 0));
  if (!made) return nullptr;
  made->call = kernel_call;
  made->entry = entry;
  made->name = name;
  made->text = text;
  Py_INCREF(name);
  if (numpy != Py_None) {
    made->numpy = numpy;
    Py_INCREF(numpy);
  }
  made->plans = new PlanCache;
  made->out_plans = new PlanCache;
  made->writer = Py_BuildValue("(OO)", name, Py_None);
  if (!made->writer) Py_CLEAR(made);
  return reinterpret_cast<PyObject*>(made);
}

int kernel_traverse(PyObject* self, visitproc visit, void* arg) {
  Kernel* kernel = as_kernel(self);
  for (PyObject* held : {kernel->op, kernel->numpy, kernel->slow, kernel->slow_out, kernel->fallback,
                         kernel->fallback_out})
    Py_VISIT(held);
  return 0;
}

void forget(Kernel* kernel) {
  kernel->plans->clear();
  kernel->out_plans->clear();
  for (PyObject** made : {&kernel->slow, &kernel->slow_out, &kernel->fallback, &kernel->fallback_out}) Py_CLEAR(*made);
}

int kernel_clear(PyObject* self) {
  Kernel* kernel = as_kernel(self);
  forget(kernel);
  Py_CLEAR(kernel->op);
  Py_CLEAR(kernel->numpy);
  return 0;
}

void kernel_dealloc(PyObject* self) {
  Kernel* kernel = as_kernel(self);
  PyObject_GC_UnTrack(self);
  if (kernel->weakrefs) PyObject_ClearWeakRefs(self);
  kernel_clear(self);
  delete kernel->plans;
  delete kernel->out_plans;
  PyMem_RawFree(kernel->signature.kinds);
  Py_XDECREF(kernel->name);
  Py_XDECREF(kernel->writer);
  Py_TYPE(self)->tp_free(self);
}

PyObject* kernel_fuse(PyObject* self, PyObject* args) {
  PyObject *op, *driver;
  if (!PyArg_ParseTuple(args, "OO:fuse", &op, &driver)) return nullptr;
  Kernel* kernel = as_kernel(self);
  if (kernel->op && kernel->op != op) {  // the operator has been replaced; others may still call this kernel
    self = PyObject_CallFunction(reinterpret_cast<PyObject*>(Py_TYPE(self)), "OOs", kernel->name,
                                 kernel->numpy ? kernel->numpy : Py_None, kernel->entry->name);
    if (!self) return nullptr;
    kernel = as_kernel(self);
  } else {
    Py_INCREF(self);
  }
  forget(kernel);  // a rule of the operator may have changed
  if (!kernel->op && !bind_kernel(kernel, op)) Py_CLEAR(self);
  return self;
}

PyObject* kernel_repr(PyObject* self) {
  Kernel* kernel = as_kernel(self);
  return PyUnicode_FromFormat("<native kernel %U (%s)>", kernel->name, tpk_isa());
}

PyObject* get_out(PyObject* self, void*) { return PyObject_GetAttrString(self, "out"); }
PyObject* get_none(PyObject*, void*) { Py_RETURN_NONE; }

PyObject* get_flag(PyObject* self, void* flag) {
  return PyBool_FromLong(as_kernel(self)->entry->flags & uint32_t(reinterpret_cast<uintptr_t>(flag)));
}

PyObject* get_plans(PyObject* self, void*) {
  return Py_BuildValue("(ii)", as_kernel(self)->plans->count(), as_kernel(self)->out_plans->count());
}

void* flag_pointer(uint32_t flag) { return reinterpret_cast<void*>(uintptr_t(flag)); }

PyMethodDef kernel_methods[] = {
    {"fuse", kernel_fuse, METH_VARARGS,
     "fuse(op, driver): this kernel, bound to the operator, with its plans forgotten."},
    {"out", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(kernel_out)), METH_FASTCALL,
     "out(out, *args): compute into preallocated tensors."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef kernel_getset[] = {
    {"out_kernel", get_out, nullptr, "What in-place forms call.", nullptr},
    {"prepare", get_none, nullptr, "None: `out` promotes and broadcasts itself.", nullptr},
    {"broadcasts", get_flag, nullptr, "Whether it takes operands as they are.", flag_pointer(TPK_ELEMENTWISE)},
    {"wants_contiguous", get_flag, nullptr, "Whether it reads contiguous inputs only.", flag_pointer(TPK_CONTIGUOUS)},
    {"mutates", get_flag, nullptr, "Whether it writes to its inputs.", flag_pointer(TPK_MUTATES)},
    {"plans", get_plans, nullptr, "How many plans are kept: (calls, out forms).", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef kernel_members[] = {
    {"name", T_OBJECT, offsetof(Kernel, name), READONLY, "The operator's name."},
    {"op", T_OBJECT, offsetof(Kernel, op), READONLY, "The operator, once bound."},
    {"numpy", T_OBJECT, offsetof(Kernel, numpy), READONLY, "The function that finds the NumPy kernel, or None."},
    {nullptr, 0, 0, 0, nullptr}};

PyTypeObject make_type() {
  PyTypeObject type = empty_type();
  type.tp_name = "tp_cpu._native.Kernel";
  type.tp_doc = "Kernel(name, numpy=None, native_name=None): the native kernel of an operator; LookupError if there is "
                "none. `numpy()` gives the NumPy out-kernel, or None, when the native one declines.";
  type.tp_basicsize = sizeof(Kernel);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  type.tp_vectorcall_offset = offsetof(Kernel, call);
  type.tp_call = PyVectorcall_Call;
  type.tp_new = kernel_new;
  type.tp_dealloc = kernel_dealloc;
  type.tp_traverse = kernel_traverse;
  type.tp_clear = kernel_clear;
  type.tp_repr = kernel_repr;
  type.tp_methods = kernel_methods;
  type.tp_getset = kernel_getset;
  type.tp_members = kernel_members;
  type.tp_weaklistoffset = offsetof(Kernel, weakrefs);
  return type;
}

}  // namespace

PyTypeObject KernelType = make_type();

}  // namespace tp
