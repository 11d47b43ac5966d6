// kernel.out(out, *args): the form that writes into existing tensors, for in-place operators and the generic path.
#include "kernel.h"

namespace tp {

namespace {

constexpr int kMostOuts = 16;

struct Outs {
  PyObject* tensors[kMostOuts];
  int count = 0;
};

bool read_outs(PyObject* out, const char* op, Outs* outs, Arguments* arguments) {
  const bool several = PyTuple_Check(out) || PyList_Check(out);
  const Py_ssize_t count = several ? PySequence_Fast_GET_SIZE(out) : out == Py_None ? 0 : 1;
  if (count > kMostOuts) {
    raise_error(core.ArgumentError, "%s: at most %d results can be written, got %zd", op, kMostOuts, count);
    return false;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* one = several ? PySequence_Fast_GET_ITEM(out, i) : out;
    PyObject* layout = is_tensor(one) ? slot(one, core.layout_of) : nullptr;
    if (!layout) {
      raise_error(core.ArgumentError, "%s: out must be a Tensor, got %s", op, Py_TYPE(one)->tp_name);
      return false;
    }
    outs->tensors[outs->count++] = one;
    if (!arguments->words.push(uint64_t(reinterpret_cast<uintptr_t>(layout)))) return false;
  }
  return true;
}

struct Span {
  const char *begin, *end;
};

Span span_of(const Region& region, const void* data) {
  const char* first = static_cast<const char*>(data);
  return {first + region.low * region.itemsize, first + (region.high + 1) * region.itemsize};
}

bool same_view(const tpk_tensor& a, const tpk_tensor& b) {
  const size_t bytes = sizeof(int64_t) * size_t(a.ndim < 0 ? 0 : a.ndim);
  return a.data == b.data && a.dtype == b.dtype && a.ndim == b.ndim && !memcmp(a.shape, b.shape, bytes) &&
         !memcmp(a.strides, b.strides, bytes);
}

// Whether the kernel may write to this out directly: elementwise ones to any view that no input overlaps, or that is
// an input; the others to contiguous memory that no input overlaps.
bool writes_directly(const tpk_entry* entry, const Plan* plan, const Arguments& arguments, Frame* frame, int out) {
  const bool elementwise = entry->flags & TPK_ELEMENTWISE;
  const tpk_tensor& target = frame->out[out];
  if (!elementwise && !target.contiguous) return false;
  const Span written = span_of(plan->out[out].region, target.data);
  for (int i = 0; i < plan->inputs; i++) {
    if (arguments.inputs.items[i].state != kPresent || plan->in[i].preparation != kAsIs) continue;
    const Span read = span_of(plan->in[i].region, frame->in[i].data);
    if (read.begin < written.end && written.begin < read.end && !(elementwise && same_view(frame->in[i], target)))
      return false;
  }
  return true;
}

// Contiguous blocks in place of outs that cannot be written directly, copied over at the end.
struct StandIns {
  const Plan* plan;
  Frame* frame;
  tpk_tensor targets[kMostOuts];
  bool used[kMostOuts] = {};
  bool any = false;

  size_t bytes_of(int i) const { return size_t(plan->out[i].dense.numel) * size_t(plan->out[i].region.itemsize); }
  bool make(const tpk_entry* entry, const Arguments& arguments) {
    for (int i = 0; i < plan->outputs; i++) {
      if (writes_directly(entry, plan, arguments, frame, i)) continue;
      void* block = tpk_alloc(bytes_of(i));
      if (!block) return raise_out_of_memory(Py_ssize_t(bytes_of(i))), false;
      targets[i] = frame->out[i];
      frame->out[i] = plan->out[i].dense;
      frame->out[i].data = block;
      used[i] = any = true;
    }
    return true;
  }
  int copy_back() {
    int status = TPK_OK;
    for (int i = 0; any && i < plan->outputs; i++)
      if (used[i] && status == TPK_OK) status = copy_tensor(frame->out[i], targets[i]);
    return status;
  }
  ~StandIns() {
    for (int i = 0; any && i < plan->outputs; i++)
      if (used[i]) tpk_free(frame->out[i].data, bytes_of(i));
  }
};

bool locate_outs(const char* op, const Plan* plan, const Outs& outs, Frame* frame) {
  if (!frame->out.grow(plan->outputs)) return PyErr_NoMemory(), false;
  for (int i = 0; i < plan->outputs; i++) {
    char* data = nullptr;
    Storage* storage = locate(op, outs.tensors[i], plan->out[i].region, &data);
    if (!storage) return false;
    frame->out[i] = plan->out[i].region.view;
    frame->out[i].data = data;
    if (!plan->release_gil) continue;
    if (!frame->kept.push(reinterpret_cast<PyObject*>(storage))) return PyErr_NoMemory(), false;
    Py_INCREF(storage);
  }
  return true;
}

PyObject* call_other_out(Kernel* kernel, PlanState why, PyObject* const* args, Py_ssize_t count) {
  PyObject* other = why == kSlow ? made_once(&kernel->slow_out, core.slow_out, kernel)
                                 : made_once(&kernel->fallback_out, core.fallback_out, kernel);
  if (!other) return nullptr;
  Py_INCREF(other);
  PyObject* result = PyObject_Vectorcall(other, args, size_t(count), nullptr);
  Py_DECREF(other);
  return result;
}

PyObject* run_out(Kernel* kernel, Plan* plan, Arguments& arguments, const Outs& outs, PyObject* const* args,
                  Py_ssize_t count) {
  const char* op = kernel->text;
  Frame frame;
  const Located located = locate_inputs(op, plan, arguments, &frame);
  if (located == kFailed) return PyErr_Occurred() ? nullptr : PyErr_NoMemory();
  if (located == kNoFit) return call_other_out(kernel, kSlow, args, count);
  if (plan->outputs != outs.count || !locate_outs(op, plan, outs, &frame)) {
    if (!PyErr_Occurred())
      raise_error(core.ArgumentError, "%s: %d results, got %d to write to", op, plan->outputs, outs.count);
    return nullptr;
  }
  StandIns stand_ins = {plan, &frame, {}, {}, false};
  if (!stand_ins.make(kernel->entry, arguments)) return nullptr;
  int status = execute(kernel->entry, plan, arguments, &frame);
  if (status == TPK_OK) status = stand_ins.copy_back();
  if (status == TPK_OK) Py_RETURN_NONE;
  if (status != TPK_UNSUPPORTED) return raise_status(kernel, status, frame);
  plan->state = kUnsupported;
  return call_other_out(kernel, kUnsupported, args, count);
}

PyObject* out_gathered(Kernel* kernel, PyObject* const* args, PyObject* const* values, Py_ssize_t count) {
  Arguments arguments;
  Outs outs;
  const char* op = kernel->text;
  if (!read_outs(args[0], op, &outs, &arguments) || !gather(kernel->signature, op, values, &arguments))
    return PyErr_Occurred() ? nullptr : PyErr_NoMemory();
  if (arguments.strange) {
    if (values != args + 1) return call_other_out(kernel, kUnsupported, args, count);
    PyObject* plain = plain_arguments(kernel->op, values, int(count - 1));
    if (!plain) return PyErr_Occurred() ? nullptr : call_other_out(kernel, kUnsupported, args, count);
    PyObject* result = out_gathered(kernel, args, &PyTuple_GET_ITEM(plain, 0), count);
    Py_DECREF(plain);
    return result;
  }
  Plan* plan = find_plan(kernel->out_plans, arguments, kernel->op, core.plan_out, values, int(count - 1), outs.tensors,
                         outs.count, kernel->entry->flags);
  if (!plan) return nullptr;
  PyObject* result = plan->state == kRun ? run_out(kernel, plan, arguments, outs, args, count)
                                         : call_other_out(kernel, plan->state, args, count);
  release(plan);
  return result;
}

}  // namespace

PyObject* kernel_out(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  Kernel* kernel = reinterpret_cast<Kernel*>(self);
  if (!kernel->op && !bind_kernel(kernel, nullptr)) return nullptr;
  if (count != kernel->signature.parameters + 1) {
    raise_error(core.ArgumentError, "%U: out() takes out and all %d arguments of the schema by position, got %zd",
                kernel->name, kernel->signature.parameters, count);
    return nullptr;
  }
  return out_gathered(kernel, args, args + 1, count);
}

}  // namespace tp
