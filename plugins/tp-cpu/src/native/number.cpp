// Between Python numbers and single elements.
#include <cmath>

#include "native.h"

namespace tp {

const int8_t itemsize_of[kDtypes] = {1, 1, 1, 2, 4, 8, 2, 4, 8, 2, 2, 4, 8, 8, 16};

namespace {

uint16_t half_from_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  const uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return sign | 0x7E00;    // NaN
  if (magnitude >= 0x477FF000) return sign | 0x7C00;   // rounds to infinity
  if (magnitude < 0x38800000) {                        // subnormal: the addition rounds to even at 2^-24
    float shifted;
    memcpy(&shifted, &magnitude, 4);
    shifted += 0.5f;
    uint32_t rounded;
    memcpy(&rounded, &shifted, 4);
    return uint16_t(sign | (rounded - 0x3F000000));
  }
  return uint16_t(sign | ((magnitude + 0xFFF + (magnitude >> 13 & 1) - 0x38000000) >> 13));
}

float float_from_half(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 0x3FF;
  float value = exponent == 31 ? (fraction ? NAN : INFINITY)
                : exponent     ? std::ldexp(float(fraction | 0x400), exponent - 25)
                               : std::ldexp(float(fraction), -24);
  return half & 0x8000 ? -value : value;
}

float float_from_bfloat(uint16_t upper) {
  const uint32_t bits = uint32_t(upper) << 16;
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

uint16_t bfloat_from_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

template <typename T>
int put(void* element, T value) {
  memcpy(element, &value, sizeof value);
  return 1;
}

template <typename T>
int put_integer(void* element, long long value) {
  return static_cast<long long>(T(value)) == value && put(element, T(value));
}

int put_float(void* element, int dtype, double value) {
  switch (dtype) {
    case TPK_F16: return put(element, half_from_float(float(value)));
    case TPK_BF16: return put(element, bfloat_from_float(float(value)));
    case TPK_F32: return put(element, float(value));
    case TPK_F64: return put(element, value);
  }
  return 0;
}

int put_int(void* element, int dtype, PyObject* number) {
  int overflow;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (dtype == TPK_U64) {
    const unsigned long long whole = PyLong_AsUnsignedLongLong(number);
    if (!PyErr_Occurred()) return put(element, uint64_t(whole));
    PyErr_Clear();
    return 0;
  }
  if (overflow) return 0;
  switch (dtype) {
    case TPK_U8: return put_integer<uint8_t>(element, value);
    case TPK_I8: return put_integer<int8_t>(element, value);
    case TPK_I16: return put_integer<int16_t>(element, value);
    case TPK_I32: return put_integer<int32_t>(element, value);
    case TPK_I64: return put(element, int64_t(value));
    case TPK_U16: return put_integer<uint16_t>(element, value);
    case TPK_U32: return put_integer<uint32_t>(element, value);
  }
  return 0;
}

template <typename T>
T get(const void* element) {
  T value;
  memcpy(&value, element, sizeof value);
  return value;
}

}  // namespace

int store_number(PyObject* number, int dtype, void* element) {
  if (dtype >= TPK_F16) {
    const double value = PyFloat_CheckExact(number) ? PyFloat_AS_DOUBLE(number) : PyLong_AsDouble(number);
    if (value == -1.0 && PyErr_Occurred()) {
      PyErr_Clear();
      return 0;
    }
    return put_float(element, dtype, value);
  }
  if (!PyLong_Check(number)) return 0;
  if (dtype == TPK_BOOL) return PyBool_Check(number) && put(element, uint8_t(number == Py_True));
  return put_int(element, dtype, number);
}

PyObject* load_number(const void* element, int dtype) {
  switch (dtype) {
    case TPK_BOOL: return PyBool_FromLong(get<uint8_t>(element));
    case TPK_U8: return PyLong_FromLong(get<uint8_t>(element));
    case TPK_I8: return PyLong_FromLong(get<int8_t>(element));
    case TPK_I16: return PyLong_FromLong(get<int16_t>(element));
    case TPK_I32: return PyLong_FromLong(get<int32_t>(element));
    case TPK_I64: return PyLong_FromLongLong(get<int64_t>(element));
    case TPK_U16: return PyLong_FromLong(get<uint16_t>(element));
    case TPK_U32: return PyLong_FromUnsignedLong(get<uint32_t>(element));
    case TPK_U64: return PyLong_FromUnsignedLongLong(get<uint64_t>(element));
    case TPK_F16: return PyFloat_FromDouble(double(float_from_half(get<uint16_t>(element))));
    case TPK_BF16: return PyFloat_FromDouble(double(float_from_bfloat(get<uint16_t>(element))));
    case TPK_F32: return PyFloat_FromDouble(double(get<float>(element)));
    case TPK_F64: return PyFloat_FromDouble(get<double>(element));
    case TPK_C64: return PyComplex_FromDoubles(double(get<float>(element)),
                                               double(get<float>(static_cast<const char*>(element) + 4)));
    case TPK_C128: return PyComplex_FromDoubles(get<double>(element),
                                                get<double>(static_cast<const char*>(element) + 8));
  }
  raise_error(core.ArgumentError, "no dtype has the code %d", dtype);
  return nullptr;
}

}  // namespace tp
