// bind(): learns from the core's classes where their slots lie, and takes the Python functions that planning needs.
#include <cstdarg>

#include "native.h"

namespace tp {

Core core;

namespace {

Py_ssize_t slot_offset(PyObject* type, const char* name) {
  PyObject* descriptor = PyObject_GetAttrString(type, name);
  if (!descriptor) return -1;
  Py_ssize_t offset = -1;
  if (Py_TYPE(descriptor) == &PyMemberDescr_Type)
    offset = reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member->offset;
  else
    PyErr_Format(PyExc_ImportError, "tp-cpu needs %R to be one of its __slots__; this tensorplay core does not fit",
                 descriptor);
  Py_DECREF(descriptor);
  return offset;
}

struct SlotName {
  Py_ssize_t* offset;
  const char* name;
};

bool find_slots(PyObject* type, const SlotName* names) {
  for (; names->name; names++)
    if ((*names->offset = slot_offset(type, names->name)) < 0) return false;
  return true;
}

struct AttributeName {
  PyObject** value;
  const char* name;
};

bool find_attributes(PyObject* module, const AttributeName* names) {
  for (; names->name; names++) {
    PyObject* found = PyObject_GetAttrString(module, names->name);
    if (!found) return false;
    Py_XDECREF(*names->value);
    *names->value = found;
  }
  return true;
}

template <typename T>
void keep(T*& place, PyObject* value) {
  Py_INCREF(value);
  Py_XDECREF(reinterpret_cast<PyObject*>(place));
  place = reinterpret_cast<T*>(value);
}

bool learn_types(PyObject* tensor, PyObject* layout, PyObject* dtype, PyObject* device) {
  const SlotName of_tensor[] = {{&core.storage, "storage"}, {&core.offset, "offset"}, {&core.layout_of, "layout"},
                                {&core.keyset, "keyset"},   {&core.node, "node"},     {&core.output, "output"},
                                {&core.base, "base"},       {&core.grad, "grad"},     {&core.hooks_of, "hooks"},
                                {nullptr, nullptr}};
  const SlotName of_layout[] = {{&core.packed, "packed"}, {&core.layout_device, "device"}, {&core.layout_code, "code"},
                                {nullptr, nullptr}};
  const SlotName of_dtype[] = {{&core.dtype_code, "code"}, {nullptr, nullptr}};
  if (!find_slots(tensor, of_tensor) || !find_slots(layout, of_layout) || !find_slots(dtype, of_dtype)) return false;
  keep(core.tensor, tensor);
  keep(core.layout, layout);
  keep(core.dtype, dtype);
  keep(core.device_type, device);
  return true;
}

}  // namespace

// bind(Tensor, Layout, DType, Device, cpu_key, errors, hooks)
PyObject* bind(PyObject*, PyObject* args) {
  PyObject *tensor, *layout, *dtype, *device, *key, *errors, *hooks;
  if (!PyArg_ParseTuple(args, "O!O!O!O!O!OO:bind", &PyType_Type, &tensor, &PyType_Type, &layout, &PyType_Type, &dtype,
                        &PyType_Type, &device, &PyLong_Type, &key, &errors, &hooks))
    return nullptr;
  const AttributeName from_errors[] = {{&core.ArgumentError, "ArgumentError"},
                                       {&core.ValueRangeError, "ValueRangeError"},
                                       {&core.MemoryLimitError, "MemoryLimitError"},
                                       {&core.DeviceError, "DeviceError"},
                                       {nullptr, nullptr}};
  const AttributeName from_hooks[] = {{&core.plan, "plan"},
                                      {&core.plan_out, "plan_out"},
                                      {&core.plan_view, "plan_view"},
                                      {&core.plain, "plain"},
                                      {&core.slow, "slow"},
                                      {&core.slow_out, "slow_out"},
                                      {&core.fallback, "fallback"},
                                      {&core.fallback_out, "fallback_out"},
                                      {&core.signature, "signature"},
                                      {&core.cpu_device, "cpu_device"},
                                      {&core.kernel_error, "kernel_error"},
                                      {nullptr, nullptr}};
  if (!find_attributes(errors, from_errors) || !find_attributes(hooks, from_hooks) ||
      !learn_types(tensor, layout, dtype, device))
    return nullptr;
  PyObject* autograd = PyObject_GetAttrString(hooks, "AUTOGRAD");
  core.autograd = autograd ? PyLong_AsLong(autograd) : -1;
  Py_XDECREF(autograd);
  if (PyErr_Occurred()) return nullptr;
  if (!core.zero && !(core.zero = PyLong_FromLong(0))) return nullptr;
  keep(core.key, key);
  keep(core.hooks, hooks);
  Py_RETURN_NONE;
}

bool require_bound() {
  if (core.hooks) return true;
  PyErr_SetString(PyExc_RuntimeError, "tp_cpu._native is not bound to a core yet; tp_cpu.CpuDriver does that");
  return false;
}

void raise_error(PyObject* error_class, const char* format, ...) {
  va_list values;
  va_start(values, format);
  PyObject* text = PyUnicode_FromFormatV(format, values);
  va_end(values);
  PyObject* error = text ? PyObject_CallOneArg(error_class ? error_class : PyExc_RuntimeError, text) : nullptr;
  Py_XDECREF(text);
  if (!error) return;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  Py_DECREF(error);
}

PyObject* cpu_device() {
  if (core.device) return core.device;
  if (!require_bound()) return nullptr;
  PyObject* made = PyObject_CallNoArgs(core.cpu_device);
  if (!made) return nullptr;
  if (core.device) Py_DECREF(made);
  else core.device = made;
  return core.device;
}

PyObject* new_tensor(PyObject* storage, PyObject* offset, PyObject* layout) {
  PyObject* made = core.tensor->tp_alloc(core.tensor, 0);
  if (!made) {
    Py_DECREF(storage);
    return nullptr;
  }
  Py_INCREF(offset);
  Py_INCREF(layout);
  Py_INCREF(core.key);
  Py_INCREF(core.zero);
  slot(made, core.storage) = storage;
  slot(made, core.offset) = offset;
  slot(made, core.layout_of) = layout;
  slot(made, core.keyset) = core.key;
  slot(made, core.output) = core.zero;
  for (Py_ssize_t at : {core.node, core.base, core.grad, core.hooks_of}) {
    Py_INCREF(Py_None);
    slot(made, at) = Py_None;
  }
  return made;
}

}  // namespace tp
