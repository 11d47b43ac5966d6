// Storage: the memory behind CPU tensors. No garbage-collected object, and recycled, since every result needs one.
#include <unistd.h>

#include "native.h"

namespace tp {

namespace {

constexpr int kRecycled = 256;
Storage* recycled[kRecycled];
int recycled_count = 0;

// Dead storages of tiny tensors keep their memory: half of what such a result costs is the allocator's lock.
#if defined(__SANITIZE_ADDRESS__)
constexpr int kTinyKept = 0;  // so that every use after free is seen
#else
constexpr int kTinyKept = 32;
#endif
constexpr int kTinyUnit = 64, kTinyClasses = 4;
Storage* tiny[kTinyClasses][kTinyKept + 1];
int tiny_count[kTinyClasses];
int64_t tiny_bytes = 0;  // counted as allocated by tpk, though nobody uses them

inline int tiny_class(Py_ssize_t nbytes) {  // -1: not tiny
  return size_t(nbytes) - 1 < size_t(kTinyUnit * kTinyClasses) ? int((nbytes - 1) / kTinyUnit) : -1;
}

bool keep_tiny(Storage* storage) {
  const int index = storage->owner ? -1 : tiny_class(storage->nbytes);
  if (index < 0 || tiny_count[index] == kTinyKept) return false;
  tiny[index][tiny_count[index]++] = storage;
  tiny_bytes += (index + 1) * kTinyUnit;
  return true;
}

Storage* take_tiny(int index) {
  Storage* storage = tiny[index][--tiny_count[index]];
  tiny_bytes -= (index + 1) * kTinyUnit;
  PyObject_Init(reinterpret_cast<PyObject*>(storage), &StorageType);
  return storage;
}

int64_t physical_memory() {
  static const int64_t bytes = int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(sysconf(_SC_PAGESIZE));
  return bytes;
}

bool refuse_size(Py_ssize_t nbytes) {
  if (nbytes < 0) {
    raise_error(core.ValueRangeError, "a storage cannot have a negative size: %zd bytes", nbytes);
    return true;
  }
  if (nbytes < (Py_ssize_t(64) << 20)) return false;  // the statistics take a lock; only big sizes are worth it
  tpk_memory_stats stats;
  tpk_memory(&stats);
  if (nbytes <= physical_memory() - stats.allocated) return false;
  raise_out_of_memory(nbytes);
  return true;
}

Storage* bare_storage() {
  if (recycled_count) {
    Storage* storage = recycled[--recycled_count];
    PyObject_Init(reinterpret_cast<PyObject*>(storage), &StorageType);
    return storage;
  }
  return PyObject_New(Storage, &StorageType);
}

PyObject* storage_new(PyTypeObject*, PyObject* args, PyObject* named) {
  static const char* names[] = {"nbytes", nullptr};
  Py_ssize_t nbytes;
  if (!PyArg_ParseTupleAndKeywords(args, named, "n:Storage", const_cast<char**>(names), &nbytes)) return nullptr;
  return new_storage(nbytes);
}

PyObject* from_pointer(PyObject*, PyObject* args) {
  PyObject *address, *owner;
  Py_ssize_t nbytes;
  if (!PyArg_ParseTuple(args, "O!nO:from_pointer", &PyLong_Type, &address, &nbytes, &owner)) return nullptr;
  void* data = PyLong_AsVoidPtr(address);
  if (!data && PyErr_Occurred()) return nullptr;
  if (nbytes < 0 || (!data && nbytes)) {
    raise_error(core.ValueRangeError, "from_pointer: %zd bytes at address %R are no memory", nbytes, address);
    return nullptr;
  }
  Storage* made = bare_storage();
  if (!made) return nullptr;
  *made = {made->ob_base, static_cast<char*>(data), nbytes, 0, owner, nullptr, nullptr};
  Py_INCREF(owner);
  return reinterpret_cast<PyObject*>(made);
}

void storage_dealloc(PyObject* self) {
  Storage* storage = reinterpret_cast<Storage*>(self);
  if (storage->weakrefs) PyObject_ClearWeakRefs(self);
  PyObject *owner = storage->owner, *writer = storage->writer;
  if (!keep_tiny(storage)) {
    if (!owner) tpk_free(storage->data, size_t(storage->nbytes));
    if (recycled_count < kRecycled) recycled[recycled_count++] = storage;
    else PyObject_Free(storage);
  }
  Py_XDECREF(owner);  // last: these may run any Python code
  Py_XDECREF(writer);
}

int storage_buffer(PyObject* self, Py_buffer* view, int flags) {
  Storage* storage = reinterpret_cast<Storage*>(self);
  return PyBuffer_FillInfo(view, self, storage->data, storage->nbytes, 0, flags);
}

PyObject* get_data(PyObject* self, void*) { return PyLong_FromVoidPtr(reinterpret_cast<Storage*>(self)->data); }

PyObject* get_device(PyObject*, void*) {
  PyObject* device = cpu_device();
  Py_XINCREF(device);
  return device;
}

PyObject* storage_repr(PyObject* self) {
  Storage* storage = reinterpret_cast<Storage*>(self);
  return PyUnicode_FromFormat("<tp_cpu.Storage of %zd bytes at %p, version %zd>", storage->nbytes, storage->data,
                              storage->version);
}

PyGetSetDef storage_getset[] = {
    {"data", get_data, nullptr, "Address of the first byte.", nullptr},
    {"device", get_device, nullptr, "The CPU.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef storage_members[] = {
    {"nbytes", T_PYSSIZET, offsetof(Storage, nbytes), READONLY, "Size in bytes."},
    {"version", T_PYSSIZET, offsetof(Storage, version), 0, "Counts in-place writes."},
    {"owner", T_OBJECT, offsetof(Storage, owner), READONLY, "The object whose memory this is, or None."},
    {"writer", T_OBJECT, offsetof(Storage, writer), 0, "(operator, place) of the last in-place write, or None."},
    {nullptr, 0, 0, 0, nullptr}};

PyMethodDef storage_methods[] = {
    {"from_pointer", from_pointer, METH_VARARGS | METH_STATIC,
     "from_pointer(address, nbytes, owner): a storage over foreign memory; `owner` is kept alive with it."},
    {nullptr, nullptr, 0, nullptr}};

PyBufferProcs storage_as_buffer = {storage_buffer, nullptr};

PyTypeObject make_type() {
  PyTypeObject type = empty_type();
  type.tp_name = "tp_cpu._native.Storage";
  type.tp_doc = "Storage(nbytes): uninitialised memory of the CPU's caching allocator, aligned to 64 bytes.";
  type.tp_basicsize = sizeof(Storage);
  type.tp_flags = Py_TPFLAGS_DEFAULT;
  type.tp_new = storage_new;
  type.tp_dealloc = storage_dealloc;
  type.tp_repr = storage_repr;
  type.tp_members = storage_members;
  type.tp_getset = storage_getset;
  type.tp_methods = storage_methods;
  type.tp_as_buffer = &storage_as_buffer;
  type.tp_weaklistoffset = offsetof(Storage, weakrefs);
  return type;
}

}  // namespace

PyTypeObject StorageType = make_type();

void read_memory(tpk_memory_stats* stats) {
  tpk_memory(stats);
  stats->allocated -= tiny_bytes;
}

void release_tiny() {
  for (int index = 0; index < kTinyClasses; index++)
    while (tiny_count[index]) {
      Storage* storage = tiny[index][--tiny_count[index]];
      tpk_free(storage->data, size_t(storage->nbytes));
      PyObject_Free(storage);
    }
  tiny_bytes = 0;
}

void raise_out_of_memory(Py_ssize_t nbytes) {
  tpk_memory_stats stats;
  read_memory(&stats);
  raise_error(core.MemoryLimitError,
        "out of memory: %zd bytes asked for; tensors hold %lld bytes (%lld with the cache) of the machine's %lld",
        nbytes, static_cast<long long>(stats.allocated), static_cast<long long>(stats.reserved),
        static_cast<long long>(physical_memory()));
}

PyObject* new_storage(Py_ssize_t nbytes) {
  if (size_t(nbytes) >= (size_t(64) << 20) && refuse_size(nbytes)) return nullptr;
  Storage* made;
  const int index = tiny_class(nbytes);
  if (index >= 0 && tiny_count[index]) {
    made = take_tiny(index);
  } else {
    void* data = tpk_alloc(size_t(nbytes));
    if (!data) return raise_out_of_memory(nbytes), nullptr;
    made = bare_storage();
    if (!made) return tpk_free(data, size_t(nbytes)), nullptr;
    made->data = static_cast<char*>(data);
  }
  made->nbytes = nbytes;
  made->version = 0;
  made->owner = made->writer = made->weakrefs = nullptr;
  return reinterpret_cast<PyObject*>(made);
}

}  // namespace tp
