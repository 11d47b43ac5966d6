#include "run.h"

namespace tp {

namespace {

const tpk_entry *copy_entry, *cast_entry;

int convert(const tpk_entry* entry, const tpk_tensor& from, tpk_tensor* to) {
  if (!to->numel) return TPK_OK;
  if (!entry) return TPK_UNSUPPORTED;
  char error[256] = "";
  const tpk_attr dtype = {TPK_ATTR_INT, 0, to->dtype, double(to->dtype), nullptr, nullptr};
  const tpk_call call = {&from, to, &dtype, 1, 1, 1, error};
  return entry->fn(&call);
}

// Blocks for prepared inputs; freed whatever happens.
struct Blocks {
  const Plan* plan;
  tpk_tensor* in;
  int done = 0;
  ~Blocks() {
    for (int i = 0; i < done; i++)
      if (plan->in[i].preparation != kAsIs) tpk_free(in[i].data, size_t(plan->in[i].dense_bytes));
  }
};

int run_prepared(const tpk_entry* entry, const tpk_call& call, const Plan* plan, Frame* frame) {
  Small<tpk_tensor, 12> in;
  if (!in.grow(plan->inputs)) return kOutOfMemory;
  Blocks blocks = {plan, in.items};
  for (int i = 0; i < plan->inputs; i++, blocks.done++) {
    const PlanInput& input = plan->in[i];
    in[i] = frame->in[i];
    if (input.preparation == kAsIs) continue;
    in[i] = input.dense;
    in[i].data = tpk_alloc(size_t(input.dense_bytes));
    if (!in[i].data) return frame->wanted = input.dense_bytes, kOutOfMemory;
    const int status = convert(input.preparation == kCast ? cast_entry : copy_entry, frame->in[i], &in[i]);
    if (status != TPK_OK) return blocks.done++, status;
  }
  tpk_call prepared = call;
  prepared.in = in.items;
  const int status = entry->fn(&prepared);
  for (int i = 0; status == TPK_OK && i < plan->inputs; i++)
    if (plan->in[i].write_back) copy_tensor(in[i], frame->in[i]);
  return status;
}

}  // namespace

int copy_tensor(const tpk_tensor& from, tpk_tensor to) {
  return convert(copy_entry, from, &to);
}

void find_conversions() {
  copy_entry = tpk_find("copy");
  cast_entry = tpk_find("cast");
}

Py_ssize_t read_offset(PyObject* offset) {
  const Py_ssize_t value = offset && PyLong_Check(offset) ? PyLong_AsSsize_t(offset) : -1;
  if (value == -1 && PyErr_Occurred()) PyErr_Clear();
  return value;
}

Storage* raise_not_located(const char* op, PyObject* tensor) {
  PyObject* held = slot(tensor, core.storage);
  if (!held || Py_TYPE(held) != &StorageType)
    raise_error(core.ArgumentError, "%s: a tensor on the CPU must have a tp_cpu Storage, this one has %s", op,
                held ? Py_TYPE(held)->tp_name : "none");
  else
    raise_error(core.ValueRangeError, "%s: a tensor reaches outside its storage of %zd bytes (offset %zd, %R)", op,
                reinterpret_cast<Storage*>(held)->nbytes, read_offset(slot(tensor, core.offset)),
                slot(tensor, core.layout_of) ? slot(tensor, core.layout_of) : Py_None);
  return nullptr;
}

Located locate_inputs(const char* op, const Plan* plan, Arguments& arguments, Frame* frame) {
  const int count = plan->inputs;
  if (!frame->in.grow(count)) return kFailed;
  for (int i = 0; i < count; i++) {
    const Input& given = arguments.inputs[i];
    tpk_tensor* view = &frame->in[i];
    *view = plan->in[i].region.view;
    if (given.state == kPresent) {
      char* data = nullptr;
      Storage* storage = locate(op, given.value, plan->in[i].region, &data);
      if (!storage) return kFailed;
      view->data = data;
      if (plan->release_gil) {
        if (!frame->kept.push(reinterpret_cast<PyObject*>(storage))) return kFailed;
        Py_INCREF(storage);
      }
    } else if (given.state == kNumber) {
      if (!frame->scalars.grow(count)) return kFailed;
      Frame::Scalar* scalar = &frame->scalars[frame->scalars.count++];
      if (!store_number(given.value, plan->compute, scalar->bytes)) return kNoFit;
      view->data = scalar->bytes;
    }
  }
  frame->in.count = count;
  return kLocated;
}

int execute(const tpk_entry* entry, const Plan* plan, Arguments& arguments, Frame* frame) {
  frame->error[0] = 0;
  const tpk_call call = {frame->in.items,  frame->out.items, arguments.attributes.items, plan->inputs,
                         plan->outputs,    arguments.attributes.count,                  frame->error};
  if (!plan->release_gil) return plan->prepared ? run_prepared(entry, call, plan, frame) : entry->fn(&call);
  PyThreadState* state = PyEval_SaveThread();
  const int status = plan->prepared ? run_prepared(entry, call, plan, frame) : entry->fn(&call);
  PyEval_RestoreThread(state);
  return status;
}

}  // namespace tp
