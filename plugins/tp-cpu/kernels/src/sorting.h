// Sorting of keys that carry their position. Keys are unsigned and ordered as the values shall be; the position breaks
// ties, so every order is total and every sort here is stable.
#pragma once
#include "dtype.h"

namespace TPK_ISA_NS {

constexpr int64_t kRunLength = 16;     // runs that are sorted by insertion
constexpr int64_t kRadixLength = 1024; // rows of 32-bit keys from here on are sorted by digits

// A 32-bit key above its position (rows have less than 2^32 elements), and a 64-bit key beside it.
typedef uint64_t PackedKey;
struct WideKey { uint64_t key; int64_t position; };

static inline bool before(PackedKey a, PackedKey b) { return a < b; }
static inline bool before(const WideKey& a, const WideKey& b) {
  return a.key < b.key || (a.key == b.key && a.position < b.position);
}
static inline int64_t position_of(PackedKey k) { return static_cast<int64_t>(k & 0xffffffffu); }
static inline int64_t position_of(const WideKey& k) { return k.position; }

// Order-preserving keys. -0 equals 0, and every NaN is the same largest value.
static inline uint32_t sort_key(float x) {
  uint32_t bits = bit_cast<uint32_t>(x + 0.0f);
  uint32_t key = bits ^ ((bits >> 31) ? 0xffffffffu : 0x80000000u);
  return x != x ? 0xffffffffu : key;
}
static inline uint64_t sort_key(double x) {
  uint64_t bits = bit_cast<uint64_t>(x + 0.0);
  uint64_t key = bits ^ ((bits >> 63) ? ~uint64_t(0) : uint64_t(1) << 63);
  return x != x ? ~uint64_t(0) : key;
}
static inline uint64_t sort_key(int64_t x) { return static_cast<uint64_t>(x) ^ (uint64_t(1) << 63); }
static inline uint32_t sort_key(int32_t x) { return static_cast<uint32_t>(x) ^ 0x80000000u; }
static inline uint32_t sort_key(int16_t x) { return sort_key(static_cast<int32_t>(x)); }
static inline uint32_t sort_key(int8_t x) { return sort_key(static_cast<int32_t>(x)); }
static inline uint32_t sort_key(uint8_t x) { return x; }
static inline uint32_t sort_key(Bool x) { return x.byte != 0; }

static inline PackedKey with_position(uint32_t key, int64_t position) {
  return static_cast<uint64_t>(key) << 32 | static_cast<uint64_t>(position);
}
static inline WideKey with_position(uint64_t key, int64_t position) { return {key, position}; }

template <class K> static inline void insertion_sort(K* a, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    K moving = a[i];
    int64_t at = i;
    for (; at > 0 && before(moving, a[at - 1]); at--) a[at] = a[at - 1];
    a[at] = moving;
  }
}

template <class K> static inline void merge(const K* a, int64_t na, const K* b, int64_t nb, K* out) {
  int64_t i = 0, j = 0, o = 0;
  while (i < na && j < nb) {
    bool right = before(b[j], a[i]);
    out[o++] = right ? b[j] : a[i];
    j += right, i += !right;
  }
  memcpy(out + o, a + i, static_cast<size_t>(na - i) * sizeof(K));
  memcpy(out + o + na - i, b + j, static_cast<size_t>(nb - j) * sizeof(K));
}

// The result is in `a`; `spare` holds n keys as well.
template <class K> static inline void merge_sort(K* a, K* spare, int64_t n) {
  for (int64_t i = 0; i < n; i += kRunLength) insertion_sort(a + i, n - i < kRunLength ? n - i : kRunLength);
  K *from = a, *to = spare;
  for (int64_t run = kRunLength; run < n; run *= 2) {
    for (int64_t i = 0; i < n; i += 2 * run) {
      int64_t na = n - i < run ? n - i : run, nb = n - i - na < run ? n - i - na : run;
      merge(from + i, na, from + i + na, nb, to + i);
    }
    K* swap = from;
    from = to, to = swap;
  }
  if (from != a) memcpy(a, from, static_cast<size_t>(n) * sizeof(K));
}

static inline void radix_sort(PackedKey* a, PackedKey* spare, int64_t n) {
  int64_t count[4][256] = {};
  for (int64_t i = 0; i < n; i++)
    for (int digit = 0; digit < 4; digit++) count[digit][a[i] >> (32 + 8 * digit) & 255]++;
  PackedKey *from = a, *to = spare;
  for (int digit = 0; digit < 4; digit++) {
    const int shift = 32 + 8 * digit;
    if (count[digit][from[0] >> shift & 255] == n) continue;  // all alike
    int64_t start = 0;
    for (int value = 0; value < 256; value++) {
      int64_t here = count[digit][value];
      count[digit][value] = start;
      start += here;
    }
    for (int64_t i = 0; i < n; i++) to[count[digit][from[i] >> shift & 255]++] = from[i];
    PackedKey* swap = from;
    from = to, to = swap;
  }
  if (from != a) memcpy(a, from, static_cast<size_t>(n) * sizeof(PackedKey));
}

static inline void sort_keys(PackedKey* a, PackedKey* spare, int64_t n) {
  if (n < kRadixLength) merge_sort(a, spare, n);
  else radix_sort(a, spare, n);
}
static inline void sort_keys(WideKey* a, WideKey* spare, int64_t n) { merge_sort(a, spare, n); }

// A heap of the k smallest keys seen so far, the largest of them on top.
template <class K> static inline void sift_down(K* heap, int64_t k, int64_t at) {
  const K moving = heap[at];
  for (int64_t child; (child = 2 * at + 1) < k; at = child) {
    if (child + 1 < k && before(heap[child], heap[child + 1])) child++;
    if (!before(moving, heap[child])) break;
    heap[at] = heap[child];
  }
  heap[at] = moving;
}
template <class K> static inline void make_heap_of(K* heap, int64_t k) {
  for (int64_t at = k / 2 - 1; at >= 0; at--) sift_down(heap, k, at);
}

}  // namespace TPK_ISA_NS
