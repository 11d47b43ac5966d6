// Running a plan: pointers in, results out.
#pragma once
#include "plan.h"

namespace tp {

// What a run needs besides the plan; all of it lives on the stack of the call.
struct Frame {
  struct Scalar {
    alignas(16) unsigned char bytes[16];
  };
  Small<tpk_tensor, 12> in;
  Small<tpk_tensor, 4> out;
  Small<Scalar, 4> scalars;
  Small<PyObject*, 16> kept;  // storages, while the interpreter is given away
  char error[256];
  Py_ssize_t wanted = 0;      // bytes of the block that could not be had
  ~Frame() {
    for (int i = 0; i < kept.count; i++) Py_DECREF(kept[i]);
  }
};

enum Located { kLocated, kNoFit, kFailed };

// Data pointers of all inputs; kNoFit if a number is outside the dtype, kFailed with an error set.
Located locate_inputs(const char* op, const Plan* plan, Arguments& arguments, Frame* frame);
Py_ssize_t read_offset(PyObject* offset);  // -1 if it is none
Storage* raise_not_located(const char* op, PyObject* tensor);

// The data of one tensor seen through a region; NULL with an error set, also if it reaches outside the storage.
inline Storage* locate(const char* op, PyObject* tensor, const Region& region, char** data) {
  PyObject *held = slot(tensor, core.storage), *at = slot(tensor, core.offset);
  if (!held || Py_TYPE(held) != &StorageType) return raise_not_located(op, tensor);
  Storage* storage = reinterpret_cast<Storage*>(held);
  const Py_ssize_t offset = at == core.zero ? 0 : read_offset(at);
  // No overflow: an offset is at most nbytes, and read_layout() keeps low and high below 2^58.
  if (region.high >= region.low && (offset < 0 || offset > storage->nbytes || offset + region.low < 0 ||
                                    (offset + region.high + 1) * region.itemsize > storage->nbytes))
    return raise_not_located(op, tensor);
  *data = storage->data + offset * region.itemsize;
  return storage;
}

constexpr int kOutOfMemory = 3;
// Copies or casts inputs first where the plan says so, runs the kernel, copies mutated inputs back. TPK_OK,
// TPK_UNSUPPORTED, TPK_ERROR or kOutOfMemory.
int execute(const tpk_entry* entry, const Plan* plan, Arguments& arguments, Frame* frame);
void find_conversions();
int copy_tensor(const tpk_tensor& from, tpk_tensor to);

}  // namespace tp
