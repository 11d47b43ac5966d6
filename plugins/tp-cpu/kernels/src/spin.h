// What a waiting loop does between two looks: tells the processor (and a hyperthread sibling) that it is waiting.
#pragma once

static inline void tpk_spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}
