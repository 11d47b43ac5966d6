// Arrays of any dtype and layout whose elements are read and written as double: the slow and obvious way.
#pragma once
#include "check.h"

namespace check {

inline int size_of(int dtype) {
  static const int sizes[15] = {1, 1, 1, 2, 4, 8, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return sizes[dtype];
}

template <class T> double read_as(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return static_cast<double>(value);
}
template <class T> void write_as(char* p, double value) {
  T typed = static_cast<T>(value);
  std::memcpy(p, &typed, sizeof(T));
}

inline double half_value(uint16_t bits) {
  double sign = bits & 0x8000 ? -1 : 1;
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}
// The nearest float16, ties to even, found by trying the neighbours.
inline uint16_t nearest_half(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return 0x7e00 | sign;
  double size = std::fabs(value);
  if (size >= 65520) return 0x7c00 | sign;
  uint16_t low = 0, high = 0x7bff;  // bits grow with the value
  while (low < high) {
    uint16_t middle = static_cast<uint16_t>((low + high + 1) / 2);
    if (half_value(middle) <= size) low = middle;
    else high = static_cast<uint16_t>(middle - 1);
  }
  double below = size - half_value(low), above = (low == 0x7bff ? 65536 : half_value(low + 1)) - size;
  bool up = above < below || (above == below && (low & 1));
  return static_cast<uint16_t>((low + up) | sign);
}

inline double read(int dtype, const char* p) {
  switch (dtype) {
    case TPK_I8: return read_as<int8_t>(p);
    case TPK_I16: return read_as<int16_t>(p);
    case TPK_I32: return read_as<int32_t>(p);
    case TPK_I64: return read_as<int64_t>(p);
    case TPK_U16: return read_as<uint16_t>(p);
    case TPK_U32: return read_as<uint32_t>(p);
    case TPK_U64: return read_as<uint64_t>(p);
    case TPK_F32:
    case TPK_C64: return read_as<float>(p);
    case TPK_F64:
    case TPK_C128: return read_as<double>(p);
    case TPK_F16: return half_value(static_cast<uint16_t>(read_as<uint16_t>(p)));
    case TPK_BF16: {
      uint32_t bits = static_cast<uint32_t>(read_as<uint16_t>(p)) << 16;
      return read_as<float>(reinterpret_cast<char*>(&bits));
    }
    default: return read_as<uint8_t>(p);
  }
}

inline void write(int dtype, char* p, double value) {
  switch (dtype) {
    case TPK_BOOL: return write_as<uint8_t>(p, value != 0);
    case TPK_I8: return write_as<int8_t>(p, value);
    case TPK_I16: return write_as<int16_t>(p, value);
    case TPK_I32: return write_as<int32_t>(p, value);
    case TPK_I64: return write_as<int64_t>(p, value);
    case TPK_U16: return write_as<uint16_t>(p, value);
    case TPK_U32: return write_as<uint32_t>(p, value);
    case TPK_U64: return write_as<uint64_t>(p, value);
    case TPK_C64: write_as<float>(p + 4, 0); [[fallthrough]];
    case TPK_F32: return write_as<float>(p, value);
    case TPK_C128: write_as<double>(p + 8, 0); [[fallthrough]];
    case TPK_F64: return write_as<double>(p, value);
    case TPK_F16: return write_as<uint16_t>(p, nearest_half(value));
    case TPK_BF16: {  // only values that need no rounding
      float single = static_cast<float>(value);
      uint32_t bits;
      std::memcpy(&bits, &single, 4);
      return write_as<uint16_t>(p, bits >> 16);
    }
    default: return write_as<uint8_t>(p, value);
  }
}

enum class Layout { dense, reversed_axes, gaps, backwards, first_broadcast, last_broadcast, scalar };
const Layout all_layouts[] = {Layout::dense,     Layout::reversed_axes,   Layout::gaps,  Layout::backwards,
                              Layout::first_broadcast, Layout::last_broadcast, Layout::scalar};

// An array that broadcasts against `full`, in one of the layouts.
struct Array {
  int dtype;
  std::vector<int64_t> full, shape, strides;
  std::vector<char> bytes;
  int64_t origin = 0;

  Array(int dtype, const std::vector<int64_t>& full, Layout layout) : dtype(dtype), full(full), shape(full) {
    if (layout == Layout::scalar) shape.clear();
    if (layout == Layout::first_broadcast && !shape.empty()) shape.front() = 1;
    if (layout == Layout::last_broadcast && !shape.empty()) shape.back() = 1;
    strides.assign(shape.size(), 1);
    int64_t step = layout == Layout::gaps ? 3 : 1, numel = 1;
    for (size_t i = 0; i < shape.size(); i++) {
      size_t d = layout == Layout::reversed_axes ? i : shape.size() - 1 - i;
      strides[d] = step;
      step *= shape[d];
      numel *= shape[d];
    }
    int64_t span = layout == Layout::gaps ? 3 * numel : numel;
    bytes.assign(static_cast<size_t>((span ? span : 1) * size_of(dtype)), 0x55);
    if (layout == Layout::backwards && numel > 0)
      for (size_t d = 0; d < shape.size(); d++) {
        origin += strides[d] * (shape[d] - 1);
        strides[d] = -strides[d];
      }
  }

  int64_t count() const {
    int64_t n = 1;
    for (int64_t size : full) n *= size;
    return n;
  }
  // The element for the flat position in `full`.
  char* at(int64_t flat) {
    int64_t offset = origin;
    for (int d = static_cast<int>(full.size()) - 1; d >= 0; d--) {
      int64_t index = flat % full[static_cast<size_t>(d)];
      flat /= full[static_cast<size_t>(d)];
      int own = d - static_cast<int>(full.size() - shape.size());
      if (own >= 0 && shape[static_cast<size_t>(own)] != 1) offset += index * strides[static_cast<size_t>(own)];
    }
    return bytes.data() + offset * size_of(dtype);
  }
  double get(int64_t flat) { return read(dtype, at(flat)); }
  void set(int64_t flat, double value) { write(dtype, at(flat), value); }
  template <class F> Array& fill(F value) {
    for (int64_t i = 0; i < count(); i++) set(i, value(i));
    return *this;
  }
  Tensor tensor() {
    return Tensor::strided(bytes.data() + origin * size_of(dtype), shape, strides, dtype);
  }
};

}  // namespace check
