#include "plan.h"

namespace tp {

namespace {

constexpr int64_t kReleaseElements = 1 << 16;  // below, giving the interpreter away costs more than the work
constexpr int kMostDims = 64;

template <typename T>
T* array_of(int count) {
  T* made = static_cast<T*>(PyMem_RawCalloc(size_t(count ? count : 1), sizeof(T)));
  if (!made) PyErr_NoMemory();
  return made;
}

// Reads a layout into a region, whose shape and strides go to `sizes`. Trusts nothing that it can compute itself.
bool read_layout(PyObject* layout, int64_t*& sizes, Region* region) {
  PyObject* packed = slot(layout, core.packed);
  PyObject* code = slot(layout, core.layout_code);
  const int dtype = code && PyLong_Check(code) ? int(PyLong_AsLong(code)) : -1;
  if (!packed || !PyBytes_CheckExact(packed) || PyBytes_GET_SIZE(packed) % 16 || dtype < 0 || dtype >= kDtypes) {
    PyErr_Clear();
    raise_error(core.ArgumentError, "a layout that tp-cpu cannot read: %R", layout);
    return false;
  }
  const int ndim = int(PyBytes_GET_SIZE(packed) / 16);
  memcpy(sizes, PyBytes_AS_STRING(packed), size_t(ndim) * 16);
  const int64_t *shape = sizes, *strides = sizes + ndim;
  sizes += 2 * ndim;
  __int128 numel = 1, low = 0, high = 0;
  bool contiguous = true;
  const __int128 most = (__int128(1) << 62) / itemsize_of[dtype];  // core's own limit, in bytes
  for (int d = ndim - 1; d >= 0; d--) {
    if (shape[d] != 1 && strides[d] != int64_t(numel)) contiguous = false;
    numel *= shape[d];
    const __int128 reach = __int128(shape[d] - 1) * strides[d];
    (reach < 0 ? low : high) += reach;
    if (shape[d] < 0 || numel > most || low < -most || high > most) {
      raise_error(core.ValueRangeError, "a layout that no memory can hold: %R", layout);
      return false;
    }
  }
  if (numel == 0) low = 0, high = -1;
  const bool dense = contiguous || numel <= 1;
  region->view = {nullptr, shape, strides, int64_t(numel), ndim, dtype, dense, 0};
  region->low = int64_t(low);
  region->high = int64_t(high);
  region->itemsize = itemsize_of[dtype];
  return true;
}

int dims_of(PyObject* layout) {
  PyObject* packed = slot(layout, core.packed);
  const Py_ssize_t bytes = packed && PyBytes_CheckExact(packed) ? PyBytes_GET_SIZE(packed) : 0;
  return bytes <= kMostDims * 16 ? int(bytes / 16) : -1;
}

bool is_layout(PyObject* object) {
  if (Py_TYPE(object) != core.layout || dims_of(object) < 0) {
    raise_error(core.ArgumentError, "expected a Layout that tp-cpu can read, got %R", object);
    return false;
  }
  PyObject* device = slot(object, core.layout_device);
  if (device != core.device) {
    if (!cpu_device()) return false;
    if (device != core.device) {
      raise_error(core.DeviceError, "a CPU kernel got a tensor that is on %S", device ? device : Py_None);
      return false;
    }
  }
  return true;
}

tpk_tensor dense_form(const tpk_tensor& view, int dtype, int64_t*& sizes) {
  int64_t* strides = sizes;
  int64_t step = 1;
  for (int d = view.ndim - 1; d >= 0; d--) {
    strides[d] = step;
    step *= view.shape[d] ? view.shape[d] : 1;
  }
  sizes += view.ndim;
  return {nullptr, view.shape, strides, view.numel, view.ndim, dtype, 1, 0};
}

bool complete_inputs(Plan* plan, Arguments& arguments, uint32_t flags, int64_t*& sizes, int64_t* work) {
  for (int i = 0; i < plan->inputs; i++) {
    PlanInput* input = &plan->in[i];
    const Input& given = arguments.inputs[i];
    if (given.state == kAbsent) {
      input->region.view = {nullptr, nullptr, nullptr, 0, -1, plan->compute < 0 ? 0 : plan->compute, 1, 0};
      continue;
    }
    if (given.state == kNumber) {
      input->region.view = {nullptr, nullptr, nullptr, 1, 0, plan->compute, 1, 0};
      continue;
    }
    if (!read_layout(plan->objects[i], sizes, &input->region)) return false;
    const tpk_tensor& view = input->region.view;
    *work += view.numel;
    if ((given.kind & kKindMask) == kOperand && plan->compute >= 0 && view.dtype != plan->compute) {
      input->preparation = kCast;
    } else if (!view.contiguous && flags & (TPK_CONTIGUOUS | TPK_MUTATES)) {
      input->preparation = kCopy;
      input->write_back = (given.kind & kMutated) != 0;
    }
    if (input->preparation == kAsIs) continue;
    input->dense = dense_form(view, input->preparation == kCast ? plan->compute : view.dtype, sizes);
    input->dense_bytes = Py_ssize_t(view.numel) * itemsize_of[input->dense.dtype];
    plan->prepared = true;
  }
  return true;
}

// `count` dimensions in all; each may be needed three times (shape, strides, strides of the dense form).
int total_dims(const Plan* plan, const Arguments& arguments, PyObject* results) {
  int count = 0;
  for (int i = 0; i < plan->inputs; i++)
    if (arguments.inputs.items[i].state == kPresent) count += dims_of(plan->objects[i]);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(results); i++) count += dims_of(PyTuple_GET_ITEM(results, i));
  return count;
}

bool complete_outputs(Plan* plan, PyObject* results, int64_t*& sizes, bool out_form, int64_t* work) {
  for (int i = 0; i < plan->outputs; i++) {
    PlanOutput* output = &plan->out[i];
    output->layout = PyTuple_GET_ITEM(results, i);
    Py_INCREF(output->layout);
    if (!read_layout(output->layout, sizes, &output->region)) return false;
    const Region& region = output->region;
    *work += region.view.numel;
    output->nbytes = Py_ssize_t(region.view.numel) * region.itemsize;
    if (region.view.numel && (region.high - region.low + 1 < region.view.numel || (!out_form && region.low))) {
      raise_error(core.ArgumentError, "a result cannot have elements that share memory: %R", output->layout);
      return false;
    }
    if (out_form) output->dense = dense_form(region.view, region.view.dtype, sizes);
    else if (region.high >= region.view.numel) output->nbytes = Py_ssize_t(region.high + 1) * region.itemsize;
  }
  return true;
}

}  // namespace

Plan* new_plan(const Arguments& arguments, uint64_t hash, PyObject* const* outs, int n_outs) {
  Plan* plan = static_cast<Plan*>(PyMem_RawCalloc(1, sizeof(Plan)));
  if (!plan) return PyErr_NoMemory(), nullptr;
  plan->references = 1;
  plan->state = kSlow;
  plan->compute = -1;
  plan->hash = hash;
  plan->words = arguments.words.count;
  plan->inputs = arguments.inputs.count;
  plan->key = array_of<uint64_t>(plan->words);
  plan->in = array_of<PlanInput>(plan->inputs);
  plan->objects = array_of<PyObject*>(plan->inputs + n_outs);
  if (!plan->key || !plan->in || !plan->objects) return release(plan), nullptr;
  memcpy(plan->key, arguments.words.items, sizeof(uint64_t) * size_t(plan->words));
  plan->held = plan->inputs + n_outs;
  for (int i = 0; i < plan->held; i++) {
    PyObject* owner = i < plan->inputs ? arguments.inputs.items[i].value : outs[i - plan->inputs];
    const bool tensor = i >= plan->inputs || arguments.inputs.items[i].state == kPresent;
    plan->objects[i] = tensor ? slot(owner, core.layout_of) : nullptr;
    Py_XINCREF(plan->objects[i]);
    if (plan->objects[i] && !is_layout(plan->objects[i])) return release(plan), nullptr;
  }
  return plan;
}

void release(Plan* plan) {
  if (!plan || --plan->references) return;
  for (int i = 0; plan->objects && i < plan->held; i++) Py_XDECREF(plan->objects[i]);
  for (int i = 0; plan->out && i < plan->outputs; i++) Py_XDECREF(plan->out[i].layout);
  for (void* part : {static_cast<void*>(plan->key), static_cast<void*>(plan->objects), static_cast<void*>(plan->in),
                     static_cast<void*>(plan->out), static_cast<void*>(plan->sizes), static_cast<void*>(plan)})
    PyMem_RawFree(part);
}

bool complete(Plan* plan, Arguments& arguments, PyObject* answer, uint32_t flags, bool out_form) {
  if (answer == Py_None) return true;  // stays slow
  PyObject* results;
  if (!PyArg_ParseTuple(answer, "O!i:plan", &PyTuple_Type, &results, &plan->compute)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(results); i++)
    if (!is_layout(PyTuple_GET_ITEM(results, i))) return false;
  const int outputs = int(PyTuple_GET_SIZE(results));
  plan->out = array_of<PlanOutput>(outputs);
  plan->sizes = array_of<int64_t>(3 * total_dims(plan, arguments, results));
  if (!plan->out || !plan->sizes) return false;
  plan->outputs = outputs;
  int64_t *sizes = plan->sizes, work = 0;
  if (!complete_inputs(plan, arguments, flags, sizes, &work) ||
      !complete_outputs(plan, results, sizes, out_form, &work))
    return false;
  plan->release_gil = work >= kReleaseElements;
  plan->state = kRun;
  plan->plain = outputs == 1 && !out_form && !plan->prepared && !plan->release_gil && !(flags & TPK_MUTATES);
  for (int i = 0; i < plan->inputs; i++) plan->plain &= arguments.inputs[i].state == kPresent;
  return true;
}

bool PlanCache::insert(Plan* plan) {
  if (!sets_ && !grow()) return false;
  while (!place(plan)) {
    if (sets_ < kMostSets) {
      if (!grow()) return false;
      continue;
    }
    Plan** set = plans_ + (plan->hash & uint64_t(sets_ - 1)) * kWays;
    Plan* oldest = set[0];
    memmove(set, set + 1, sizeof(Plan*) * (kWays - 1));
    set[kWays - 1] = retain(plan);
    release(oldest);  // last: it may run Python code
    break;
  }
  return true;
}

bool PlanCache::place(Plan* plan) {
  Plan** set = plans_ + (plan->hash & uint64_t(sets_ - 1)) * kWays;
  for (int way = 0; way < kWays; way++)
    if (!set[way]) {
      set[way] = retain(plan);
      return true;
    }
  return false;
}

bool PlanCache::grow() {
  const int old_sets = sets_, sets = sets_ ? sets_ * 2 : 2;
  Plan **old = plans_, **made = array_of<Plan*>(sets * kWays);
  if (!made) return false;
  plans_ = made;
  sets_ = sets;
  for (int i = 0; i < old_sets * kWays; i++)
    if (old[i]) {
      place(old[i]);  // twice as many sets: it fits
      old[i]->references--;
    }
  PyMem_RawFree(old);
  return true;
}

void PlanCache::clear() {
  Plan** old = plans_;
  const int count = sets_ * kWays;
  plans_ = nullptr;
  sets_ = 0;
  for (int i = 0; i < count; i++) release(old[i]);
  PyMem_RawFree(old);
}

int PlanCache::count() const {
  int total = 0;
  for (int i = 0; i < sets_ * kWays; i++) total += plans_[i] != nullptr;
  return total;
}

}  // namespace tp
