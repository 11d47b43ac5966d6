// Philox4x32-10: random words as a function of the seed and a counter, so that every device gives the same.
#pragma once
#include "dtype.h"

namespace TPK_ISA_NS {

struct Philox { uint32_t key0, key1; };

static inline Philox philox(uint64_t seed) {
  return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
}

struct PhiloxBlock { uint32_t word[4]; };

static inline __attribute__((always_inline)) void philox_round(PhiloxBlock& c, uint32_t key0, uint32_t key1) {
  uint64_t first = static_cast<uint64_t>(c.word[0]) * 0xD2511F53u;
  uint64_t second = static_cast<uint64_t>(c.word[2]) * 0xCD9E8D57u;
  uint32_t word0 = static_cast<uint32_t>(second >> 32) ^ c.word[1] ^ key0;
  uint32_t word2 = static_cast<uint32_t>(first >> 32) ^ c.word[3] ^ key1;
  c.word[1] = static_cast<uint32_t>(second);
  c.word[3] = static_cast<uint32_t>(first);
  c.word[0] = word0;
  c.word[2] = word2;
}

// The words of `blocks` blocks from `counter` on.
static inline void philox_words(Philox generator, uint64_t counter, int64_t blocks, uint32_t* words) {
  uint32_t key0[10], key1[10];
  for (uint32_t r = 0; r < 10; r++) {
    key0[r] = generator.key0 + r * 0x9E3779B9u;
    key1[r] = generator.key1 + r * 0xBB67AE85u;
  }
  for (int64_t i = 0; i < blocks; i++) {
    uint64_t at = counter + static_cast<uint64_t>(i);
    PhiloxBlock c = {{static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0}};
#define TPK_ROUND(r) philox_round(c, key0[r], key1[r]);
    TPK_ROUND(0) TPK_ROUND(1) TPK_ROUND(2) TPK_ROUND(3) TPK_ROUND(4)
    TPK_ROUND(5) TPK_ROUND(6) TPK_ROUND(7) TPK_ROUND(8) TPK_ROUND(9)
#undef TPK_ROUND
    words[4 * i] = c.word[0];
    words[4 * i + 1] = c.word[1];
    words[4 * i + 2] = c.word[2];
    words[4 * i + 3] = c.word[3];
  }
}

}  // namespace TPK_ISA_NS
