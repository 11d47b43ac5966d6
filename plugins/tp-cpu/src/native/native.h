// The thin Python layer over tpk: what its files share.
//
// A tensor is a plain Python object with __slots__. The member descriptors of its class say at which offset each slot
// lies, and the same offsets hold for every subclass; so C code reads and fills slots like struct fields. Every read
// checks for NULL (a slot that was deleted) and for the exact type of a storage.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "tpk.h"

namespace tp {

// ---- what bind() learned about the core ----
struct Core {
  PyTypeObject *tensor, *layout, *dtype, *device_type;
  PyObject *device;   // the core's Device('cpu'); made on first use
  PyObject *key;      // the CPU's dispatch bit
  PyObject *hooks;    // the Python module with the functions below
  PyObject *plan, *plan_out, *plan_view, *plain, *slow, *slow_out, *fallback, *fallback_out, *signature, *cpu_device;
  PyObject *kernel_error;
  PyObject *ArgumentError, *ValueRangeError, *MemoryLimitError, *DeviceError;
  PyObject* zero;
  long autograd;      // the AUTOGRAD bit
  // offsets of Tensor's slots
  Py_ssize_t storage, offset, layout_of, keyset, node, output, base, grad, hooks_of;
  // offsets of Layout's and DType's slots
  Py_ssize_t layout_device, packed, layout_code, dtype_code;
};
extern Core core;

inline PyObject*& slot(PyObject* object, Py_ssize_t offset) {
  return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset);
}

inline bool is_tensor(PyObject* object) {
  return Py_TYPE(object) == core.tensor || PyType_IsSubtype(Py_TYPE(object), core.tensor);
}

inline PyTypeObject empty_type() {
  PyTypeObject type = {};
  type.ob_base = {PyObject_HEAD_INIT(nullptr) 0};
  return type;
}

PyObject* bind(PyObject*, PyObject* args);
bool require_bound();
PyObject* cpu_device();  // borrowed
// Raises a designed error. Made at once, not when somebody looks at it: the error records the line it happened at.
void raise_error(PyObject* error_class, const char* format, ...);

// ---- storage ----
struct Storage {
  PyObject_HEAD
  char* data;
  Py_ssize_t nbytes;
  Py_ssize_t version;
  PyObject* owner;   // keeps foreign memory alive; NULL: the memory is tpk's
  PyObject* writer;  // who wrote last; NULL is None
  PyObject* weakrefs;
};
extern PyTypeObject StorageType;
PyObject* new_storage(Py_ssize_t nbytes);
void raise_out_of_memory(Py_ssize_t nbytes);
void read_memory(tpk_memory_stats* stats);  // what tensors hold; without the memory that dead tiny storages keep
void release_tiny();

// A tensor without history on the CPU; takes over the reference to `storage`.
PyObject* new_tensor(PyObject* storage, PyObject* offset, PyObject* layout);

// ---- dtypes and numbers ----
constexpr int kDtypes = 15;
extern const int8_t itemsize_of[kDtypes];
// The number as an element of the dtype: 1 done, 0 it does not fit (no Python error is set).
int store_number(PyObject* number, int dtype, void* element);
PyObject* load_number(const void* element, int dtype);

// ---- a vector that lives on the stack while it is small ----
template <typename T, int N>
struct Small {
  T* items;
  int count = 0, capacity = N;
  T inside[N];
  Small() : items(inside) {}
  Small(const Small&) = delete;
  Small& operator=(const Small&) = delete;
  ~Small() {
    if (items != inside) PyMem_RawFree(items);
  }
  bool grow(int wanted) {
    if (wanted <= capacity) return true;
    int bigger = capacity * 2 > wanted ? capacity * 2 : wanted;
    T* moved = static_cast<T*>(PyMem_RawMalloc(sizeof(T) * size_t(bigger)));
    if (!moved) return false;  // no Python error: this may run without the interpreter
    memcpy(static_cast<void*>(moved), items, sizeof(T) * size_t(count));
    if (items != inside) PyMem_RawFree(items);
    items = moved;
    capacity = bigger;
    return true;
  }
  bool push(const T& item) {
    if (count == capacity && !grow(count + 1)) return false;
    items[count++] = item;
    return true;
  }
  T& operator[](int i) { return items[i]; }
};

extern PyTypeObject KernelType, ViewKernelType;

}  // namespace tp
