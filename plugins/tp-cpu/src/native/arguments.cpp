#include "arguments.h"

namespace tp {

namespace {

// Tags of words. Layouts stand for themselves: an address is larger than any tag.
enum Tag : uint64_t { kNone = 1, kBool, kInt, kDouble, kInts, kText, kDType, kObject, kList, kNumberTag };
constexpr Py_ssize_t kLongestText = 64, kLongestList = 256;

inline uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// A list of ints goes into the words; the attribute keeps the place, which becomes a pointer when all is read.
bool read_ints(PyObject* value, tpk_attr* attribute, Arguments* out) {
  const bool is_tuple = PyTuple_CheckExact(value);
  const Py_ssize_t count = is_tuple ? PyTuple_GET_SIZE(value) : PyList_GET_SIZE(value);
  PyObject** items = is_tuple ? &PyTuple_GET_ITEM(value, 0) : reinterpret_cast<PyListObject*>(value)->ob_item;
  if (count > kLongestList) return out->strange = true;
  if (!out->words.push(uint64_t(kInts) | uint64_t(count) << 8)) return false;
  *attribute = {TPK_ATTR_INTS, int32_t(count), out->words.count, 0.0, nullptr, nullptr};
  for (Py_ssize_t i = 0; i < count; i++) {
    int overflow = 1;
    const long long number = PyLong_CheckExact(items[i]) ? PyLong_AsLongLongAndOverflow(items[i], &overflow) : 0;
    if (overflow) return out->strange = true;
    if (!out->words.push(uint64_t(number))) return false;
  }
  return true;
}

bool read_text(PyObject* value, tpk_attr* attribute, Arguments* out) {
  Py_ssize_t length;
  const char* text = PyUnicode_AsUTF8AndSize(value, &length);
  if (!text) PyErr_Clear();
  if (!text || length > kLongestText) return out->strange = true;
  *attribute = {TPK_ATTR_TEXT, int32_t(length), 0, 0.0, nullptr, text};
  if (!out->words.push(uint64_t(kText) | uint64_t(length) << 8)) return false;
  for (Py_ssize_t at = 0; at < length; at += 8) {
    uint64_t word = 0;
    memcpy(&word, text + at, size_t(length - at < 8 ? length - at : 8));
    if (!out->words.push(word)) return false;
  }
  return true;
}

bool read_int(PyObject* value, uint8_t kind, tpk_attr* attribute, Arguments* out) {
  int overflow;
  long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow > 0 && (kind & kKindMask) == kWord && _PyLong_NumBits(value) <= 64) {
    number = static_cast<long long>(PyLong_AsUnsignedLongLongMask(value));
    overflow = 0;
  }
  if (overflow) return out->strange = true;
  if (kind & kListed) {
    *attribute = {TPK_ATTR_INTS, 1, out->words.count + 1, 0.0, nullptr, nullptr};
    return out->words.push(uint64_t(kInts) | 1 << 8 | uint64_t(1) << 32) && out->words.push(uint64_t(number));
  }
  const bool is_float = (kind & kKindMask) == kFloat;
  *attribute = {is_float ? TPK_ATTR_FLOAT : TPK_ATTR_INT, 0, number, double(number), nullptr, nullptr};
  return out->words.push(kInt) && (kind & kValueFree || out->words.push(uint64_t(number)));
}

bool read_attribute(PyObject* value, uint8_t kind, Arguments* out) {
  tpk_attr attribute = {TPK_ATTR_NONE, 0, 0, 0.0, nullptr, nullptr};
  bool done;
  if (value == Py_None) {
    done = out->words.push(kNone);
  } else if ((kind & kKindMask) == kIgnored) {
    done = out->words.push(kObject) && out->words.push(uint64_t(reinterpret_cast<uintptr_t>(value)));
  } else if (PyBool_Check(value)) {
    const int truth = value == Py_True;
    attribute = {TPK_ATTR_BOOL, 0, truth, double(truth), nullptr, nullptr};
    done = out->words.push(uint64_t(kBool) | uint64_t(truth) << 8);
  } else if (PyLong_CheckExact(value)) {
    done = read_int(value, kind, &attribute, out);
  } else if (PyFloat_CheckExact(value)) {
    const double number = PyFloat_AS_DOUBLE(value);
    attribute = {TPK_ATTR_FLOAT, 0, 0, number, nullptr, nullptr};
    done = out->words.push(kDouble) && (kind & kValueFree || out->words.push(bits_of(number)));
  } else if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
    done = read_ints(value, &attribute, out);
  } else if (PyUnicode_CheckExact(value)) {
    done = read_text(value, &attribute, out);
  } else if (Py_TYPE(value) == core.dtype) {
    PyObject* code = slot(value, core.dtype_code);
    const long number = code && PyLong_CheckExact(code) ? PyLong_AsLong(code) : -1;
    if (number < 0 || number >= kDtypes) return out->strange = true;
    attribute = {TPK_ATTR_INT, 0, number, double(number), nullptr, nullptr};
    done = out->words.push(uint64_t(kDType) | uint64_t(uint32_t(number)) << 8);
  } else {
    done = out->strange = true;
  }
  return done && out->attributes.push(attribute);
}

bool read_tensor(PyObject* value, uint8_t kind, const char* op, Arguments* out) {
  PyObject* layout = slot(value, core.layout_of);
  if (!layout) {
    raise_error(core.ArgumentError, "%s: a tensor without a layout (its slots have been deleted)", op);
    return false;
  }
  return out->inputs.push({value, kPresent, kind}) &&
         out->words.push(uint64_t(reinterpret_cast<uintptr_t>(layout)));
}

bool read_other_input(PyObject* value, uint8_t kind, const char* op, Arguments* out) {
  if (value == Py_None && kind & kOptional) return out->inputs.push({value, kAbsent, kind}) && out->words.push(kNone);
  if ((kind & kKindMask) == kOperand) {
    int sort = PyBool_Check(value) ? 0 : PyLong_CheckExact(value) ? 1 : PyFloat_CheckExact(value) ? 2
               : PyComplex_CheckExact(value) ? 3 : -1;
    if (sort >= 0)
      return out->inputs.push({value, kNumber, kind}) && out->words.push(uint64_t(kNumberTag) | uint64_t(sort) << 8);
  }
  raise_error(core.ArgumentError, "%s: expected a Tensor%s, got %s", op,
        (kind & kKindMask) == kOperand ? " or a number" : "", Py_TYPE(value)->tp_name);
  return false;
}

bool read_tensors(PyObject* value, uint8_t kind, const char* op, Arguments* out) {
  if (value == Py_None && kind & kOptional) return out->words.push(kNone);
  if (!PyList_Check(value) && !PyTuple_Check(value)) {
    raise_error(core.ArgumentError, "%s: expected a list of Tensors, got %s", op, Py_TYPE(value)->tp_name);
    return false;
  }
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
  if (!out->words.push(uint64_t(kList) | uint64_t(count) << 8)) return false;
  const int first = out->inputs.count;
  if (out->owned_to == out->owned_from) out->owned_from = out->owned_to = first;
  while (out->owned_to < first) Py_INCREF(out->inputs[out->owned_to++].value);  // what stands between two lists
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* item = PySequence_Fast_GET_ITEM(value, i);
    if (is_tensor(item) ? !read_tensor(item, kind, op, out) : !read_other_input(item, kind, op, out)) return false;
    Py_INCREF(item);
    out->owned_to++;
  }
  return true;
}

}  // namespace

bool gather(const Signature& signature, const char* op, PyObject* const* args, Arguments* out) {
  bool lists = false;
  for (int i = 0; i < signature.parameters; i++) {
    const uint8_t kind = signature.kinds[i], sort = kind & kKindMask;
    PyObject* value = args[i];
    bool done;
    if (sort <= kOperand) {
      done = is_tensor(value) ? read_tensor(value, kind, op, out) : read_other_input(value, kind, op, out);
    } else if (sort == kTensors) {
      done = read_tensors(value, kind, op, out);
      // Optimizer steps get the number of parameters in front of their attributes (native kernels see one flat list).
      if (done && signature.mutates && !i && PySequence_Check(value)) {
        const int64_t tensors = out->inputs.count;
        done = out->attributes.push({TPK_ATTR_INT, 0, tensors, double(tensors), nullptr, nullptr});
      }
    } else {
      lists = true;
      done = read_attribute(value, kind, out);
    }
    if (!done) return false;
  }
  for (int i = 0; lists && i < out->attributes.count; i++)
    if (out->attributes[i].kind == TPK_ATTR_INTS)
      out->attributes[i].list = reinterpret_cast<const int64_t*>(out->words.items + out->attributes[i].i);
  return true;
}

}  // namespace tp
