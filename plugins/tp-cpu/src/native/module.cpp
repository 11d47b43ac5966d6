// The module tp_cpu._native.
#include "kernel.h"

namespace tp {

namespace {

PyObject* make_tensor(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 3 || Py_TYPE(args[2]) != core.layout || !PyLong_Check(args[1])) {
    if (require_bound()) raise_error(core.ArgumentError, "make_tensor takes (storage, int offset, Layout)");
    return nullptr;
  }
  PyObject* device = slot(args[2], core.layout_device);
  if (device != core.device && (!cpu_device() || device != core.device)) {
    if (!PyErr_Occurred())
      raise_error(core.DeviceError, "make_tensor of tp-cpu got a layout on %S", device ? device : Py_None);
    return nullptr;
  }
  Py_INCREF(args[0]);
  return new_tensor(args[0], args[1], args[2]);
}

PyObject* read_scalar(PyObject*, PyObject* args) {
  PyObject* held;
  Py_ssize_t offset;
  int dtype;
  if (!PyArg_ParseTuple(args, "O!ni:read_scalar", &StorageType, &held, &offset, &dtype)) return nullptr;
  const Storage* storage = reinterpret_cast<Storage*>(held);
  if (dtype < 0 || dtype >= kDtypes || offset < 0 || offset >= storage->nbytes / itemsize_of[dtype]) {
    raise_error(core.ValueRangeError, "element %zd of dtype %d is outside a storage of %zd bytes", offset, dtype,
                storage->nbytes);
    return nullptr;
  }
  return load_number(storage->data + offset * itemsize_of[dtype], dtype);
}

PyObject* kernel_names(PyObject*, PyObject*) {
  int count;
  const tpk_entry* entries = tpk_entries(&count);
  PyObject* names = PyList_New(count);
  for (int i = 0; names && i < count; i++) {
    PyObject* name = PyUnicode_FromString(entries[i].name);
    if (!name) Py_CLEAR(names);
    else PyList_SET_ITEM(names, i, name);
  }
  return names;
}

PyObject* set_num_threads(PyObject*, PyObject* args) {
  int count;
  if (!PyArg_ParseTuple(args, "i:set_num_threads", &count)) return nullptr;
  if (count < 1) {
    raise_error(core.ValueRangeError, "the number of threads must be at least 1, got %d", count);
    return nullptr;
  }
  tpk_set_num_threads(count);
  Py_RETURN_NONE;
}

PyObject* num_threads(PyObject*, PyObject*) { return PyLong_FromLong(tpk_num_threads()); }

PyObject* memory_stats(PyObject*, PyObject*) {
  tpk_memory_stats stats;
  read_memory(&stats);
  const auto number = [](int64_t value) { return static_cast<long long>(value); };
  return Py_BuildValue("{sLsLsLsLsLsL}", "allocated", number(stats.allocated), "allocated_peak",
                       number(stats.allocated_peak), "reserved", number(stats.reserved), "reserved_peak",
                       number(stats.reserved_peak), "allocations", number(stats.allocations), "cache_hits",
                       number(stats.cache_hits));
}

PyObject* reset_peak(PyObject*, PyObject*) {
  tpk_memory_reset_peak();
  Py_RETURN_NONE;
}

PyObject* empty_cache(PyObject*, PyObject*) {
  release_tiny();
  Py_BEGIN_ALLOW_THREADS
  tpk_empty_cache();
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

PyObject* isa(PyObject*, PyObject*) { return PyUnicode_FromString(tpk_isa()); }
PyObject* blas_name(PyObject*, PyObject*) { return PyUnicode_FromString(tpk_blas_name()); }

PyObject* set_blas_path(PyObject*, PyObject* args) {
  const char* path;
  static char kept[4096];  // tpk keeps the pointer
  if (!PyArg_ParseTuple(args, "z:set_blas_path", &path)) return nullptr;
  if (path && strlen(path) >= sizeof kept) return PyErr_Format(PyExc_ValueError, "the path is too long: %s", path);
  if (path) strcpy(kept, path);
  tpk_set_blas_path(path ? kept : nullptr);
  Py_RETURN_NONE;
}

struct Symbol {
  const char* name;
  void* address;
};

#define TPK_SYMBOL(name) {#name, reinterpret_cast<void*>(name)}
const Symbol symbols[] = {TPK_SYMBOL(tpk_find), TPK_SYMBOL(tpk_entries), TPK_SYMBOL(tpk_isa), TPK_SYMBOL(tpk_alloc),
                          TPK_SYMBOL(tpk_free), TPK_SYMBOL(tpk_empty_cache), TPK_SYMBOL(tpk_memory),
                          TPK_SYMBOL(tpk_num_threads), TPK_SYMBOL(tpk_set_num_threads), TPK_SYMBOL(tpk_parallel),
                          TPK_SYMBOL(tpk_sgemm), TPK_SYMBOL(tpk_dgemm), TPK_SYMBOL(tpk_blas_name)};

// The address of a function of tpk, or of a kernel as "kernel:NAME": for code that is compiled at run time.
PyObject* symbol(PyObject*, PyObject* args) {
  const char* name;
  if (!PyArg_ParseTuple(args, "s:symbol", &name)) return nullptr;
  if (!strncmp(name, "kernel:", 7)) {
    const tpk_entry* entry = tpk_find(name + 7);
    if (entry) return PyLong_FromVoidPtr(reinterpret_cast<void*>(entry->fn));
  }
  for (const Symbol& one : symbols)
    if (!strcmp(one.name, name)) return PyLong_FromVoidPtr(one.address);
  return PyErr_Format(PyExc_LookupError, "tpk has no function named %s", name);
}

PyMethodDef methods[] = {
    {"bind", bind, METH_VARARGS, "bind(Tensor, Layout, DType, Device, cpu_key, errors, hooks): once, by the driver."},
    {"make_tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_tensor)), METH_FASTCALL,
     "make_tensor(storage, offset, layout): a CPU tensor without history."},
    {"read_scalar", read_scalar, METH_VARARGS, "read_scalar(storage, offset, dtype_code): one element as a number."},
    {"kernel_names", kernel_names, METH_NOARGS, "The names of all native kernels."},
    {"set_num_threads", set_num_threads, METH_VARARGS, "set_num_threads(n): how many threads a kernel may use."},
    {"num_threads", num_threads, METH_NOARGS, "How many threads a kernel may use."},
    {"memory_stats", memory_stats, METH_NOARGS, "Bytes in use and in the cache, with peaks and counts."},
    {"reset_peak", reset_peak, METH_NOARGS, "Make the peaks what is in use now."},
    {"empty_cache", empty_cache, METH_NOARGS, "Give cached blocks back to the system."},
    {"isa", isa, METH_NOARGS, "The instruction set that was chosen."},
    {"blas_name", blas_name, METH_NOARGS, "The GEMM library in use; empty before the first use."},
    {"set_blas_path", set_blas_path, METH_VARARGS, "set_blas_path(path): where to open the GEMM library from."},
    {"symbol", symbol, METH_VARARGS, "symbol(name): the address of a tpk function, or of a kernel: 'kernel:add'."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", "The native layer of tp-cpu.", -1, methods,
                          nullptr, nullptr, nullptr, nullptr};

}  // namespace

}  // namespace tp

PyMODINIT_FUNC PyInit__native() {
  tp::find_conversions();
  PyObject* module = PyModule_Create(&tp::definition);
  if (!module) return nullptr;
  for (PyTypeObject* type : {&tp::StorageType, &tp::KernelType, &tp::ViewKernelType})
    if (PyModule_AddType(module, type) < 0) {
      Py_DECREF(module);
      return nullptr;
    }
  return module;
}
