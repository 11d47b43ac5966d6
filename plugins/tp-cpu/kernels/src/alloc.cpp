// The caching allocator: size classes, one intrusive free list each, one spin lock around a few plain instructions.
//
// The lock costs one atomic exchange when nobody else holds it, less than the lookup of a thread-local cache in a
// shared library, and it keeps the statistics (the peak above all) exact.
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "spin.h"
#include "tpk.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kLinearLimit = 1024;       // up to here one class every 64 bytes, above eight to each doubling
constexpr size_t kLargest = size_t(1) << 46;
constexpr int kLinearClasses = kLinearLimit / kAlignment;
constexpr int kClasses = kLinearClasses + (46 - 10) * 8;
constexpr size_t kHugePage = size_t(2) << 20;
constexpr int64_t kBigBlock = 1 << 20;      // from here on the total in the cache is bounded
constexpr int64_t kBigCacheFloor = int64_t(256) << 20;

struct FreeBlock {
  FreeBlock* next;
};

std::atomic<uint32_t> guard{0};
FreeBlock* free_lists[kClasses];
tpk_memory_stats stats;
int64_t big_cached;      // bytes of cached blocks of at least kBigBlock
int eviction_hand = 0;

void lock() {
  if (!guard.exchange(1, std::memory_order_acquire)) return;
  for (int spins = 0;; spins++) {
    if (!guard.load(std::memory_order_relaxed) && !guard.exchange(1, std::memory_order_acquire)) return;
    if (spins < 100) tpk_spin_pause();
    else sched_yield();
  }
}

void unlock() { guard.store(0, std::memory_order_release); }

// A child must not inherit a lock held by a thread that it does not have.
const int fork_registered = pthread_atfork(lock, unlock, unlock);

int64_t physical_memory() {
  static const int64_t bytes = int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(sysconf(_SC_PAGESIZE));
  return bytes;
}

inline int class_of(size_t nbytes, size_t* block_bytes) {
  if (nbytes <= kLinearLimit) {
    int index = nbytes ? int((nbytes - 1) / kAlignment) : 0;
    *block_bytes = size_t(index + 1) * kAlignment;
    return index;
  }
  int exponent = 63 - __builtin_clzll(nbytes - 1);
  int shift = exponent - 3;
  size_t steps = ((nbytes - 1) >> shift) + 1; // 9..16 eighths of 2^exponent
  *block_bytes = steps << shift;
  return kLinearClasses + (exponent - 10) * 8 + int(steps) - 9;
}

size_t bytes_of_class(int index) {
  if (index < kLinearClasses) return size_t(index + 1) * kAlignment;
  int octave = (index - kLinearClasses) / 8, step = (index - kLinearClasses) % 8;
  return size_t(step + 9) << (octave + 7);
}

void* system_allocate(size_t bytes) {
  void* block = nullptr;
  if (posix_memalign(&block, bytes >= 2 * kHugePage ? kHugePage : kAlignment, bytes)) return nullptr;
#if defined(__linux__)
  // One fault per 2 MiB instead of 512: first use of a fresh block is otherwise dominated by page faults.
  if (bytes >= 2 * kHugePage) madvise(block, bytes, MADV_HUGEPAGE);
#endif
  return block;
}

void system_free(void* block, size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  std::free(block);
}

// Detaches the whole cache; the caller frees the chains without the lock.
struct Detached {
  FreeBlock* lists[kClasses];
};

void detach_all(Detached* detached) {
  for (int i = 0; i < kClasses; i++) {
    detached->lists[i] = free_lists[i];
    free_lists[i] = nullptr;
  }
  big_cached = 0;
  stats.reserved = stats.allocated;
}

void release(const Detached& detached) {
  for (int i = 0; i < kClasses; i++)
    for (FreeBlock* block = detached.lists[i]; block;) {
      FreeBlock* next = block->next;
      system_free(block, bytes_of_class(i));
      block = next;
    }
}

// As much cache as was ever live at once (a training step frees all its activations and wants them back), but not
// more than a quarter of the machine; small processes may keep kBigCacheFloor.
int64_t big_cache_limit() {
  int64_t limit = stats.allocated_peak;
  if (limit > physical_memory() / 4) limit = physical_memory() / 4;
  return limit > kBigCacheFloor ? limit : kBigCacheFloor;
}

// With the lock held: unlinks big blocks, oldest-visited class first, until `bytes` fit; returns them as a chain
// through `next`, sizes in the second word of each block.
struct Evicted {
  Evicted* next;
  size_t bytes;
};

Evicted* evict_for(int64_t bytes) {
  Evicted* chain = nullptr;
  size_t first_bytes;
  const int first = class_of(kBigBlock, &first_bytes);
  const int64_t limit = big_cache_limit();
  for (int visited = 0; visited < kClasses && big_cached && big_cached + bytes > limit; visited++) {
    if (++eviction_hand >= kClasses || eviction_hand < first) eviction_hand = first;
    size_t block_bytes = bytes_of_class(eviction_hand);
    while (free_lists[eviction_hand] && big_cached + bytes > limit) {
      FreeBlock* block = free_lists[eviction_hand];
      free_lists[eviction_hand] = block->next;
      ASAN_UNPOISON_MEMORY_REGION(block, sizeof(Evicted));
      Evicted* victim = reinterpret_cast<Evicted*>(block);
      *victim = {chain, block_bytes};
      chain = victim;
      big_cached -= int64_t(block_bytes);
      stats.reserved -= int64_t(block_bytes);
    }
  }
  return chain;
}

inline void count_live(int64_t bytes) {
  stats.allocations++;
  stats.allocated += bytes;
  if (stats.allocated > stats.allocated_peak) stats.allocated_peak = stats.allocated;
}

__attribute__((noinline)) void* allocate_fresh(size_t nbytes, size_t block_bytes) {
  void* block = system_allocate(block_bytes);
  if (!block) {
    tpk_empty_cache();
    block = system_allocate(block_bytes);
    if (!block) return nullptr;
  }
  lock();
  count_live(int64_t(block_bytes));
  stats.reserved += int64_t(block_bytes);
  if (stats.reserved > stats.reserved_peak) stats.reserved_peak = stats.reserved;
  unlock();
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + nbytes, block_bytes - nbytes);
  return block;
}

__attribute__((noinline)) void free_big(void* block, size_t block_bytes, int index) {
  lock();
  stats.allocated -= int64_t(block_bytes);
  Evicted* victims = evict_for(int64_t(block_bytes));
  const bool keep = big_cached + int64_t(block_bytes) <= big_cache_limit();
  if (keep) {
    FreeBlock* entry = static_cast<FreeBlock*>(block);
    entry->next = free_lists[index];
    free_lists[index] = entry;
    big_cached += int64_t(block_bytes);
  } else {
    stats.reserved -= int64_t(block_bytes);
  }
  unlock();
  if (!keep) system_free(block, block_bytes);
  while (victims) {
    Evicted* next = victims->next;
    system_free(victims, victims->bytes);
    victims = next;
  }
}

}  // namespace

extern "C" void* tpk_alloc(size_t nbytes) {
  if (__builtin_expect(nbytes > kLargest, 0)) return nullptr;
  size_t block_bytes;
  const int index = class_of(nbytes, &block_bytes);
  lock();
  FreeBlock* block = free_lists[index];
  if (__builtin_expect(!block, 0)) {
    unlock();
    return allocate_fresh(nbytes, block_bytes);
  }
  free_lists[index] = block->next;
  stats.cache_hits++;
  count_live(int64_t(block_bytes));
  if (block_bytes >= size_t(kBigBlock)) big_cached -= int64_t(block_bytes);
  unlock();
  ASAN_UNPOISON_MEMORY_REGION(block, nbytes);
  return block;
}

extern "C" void tpk_free(void* block, size_t nbytes) {
  if (!block) return;
  size_t block_bytes;
  const int index = class_of(nbytes, &block_bytes);
  // The link stays readable; the rest of a cached block is forbidden ground for AddressSanitizer.
  ASAN_UNPOISON_MEMORY_REGION(block, sizeof(Evicted));
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + sizeof(Evicted), block_bytes - sizeof(Evicted));
  if (block_bytes >= size_t(kBigBlock)) return free_big(block, block_bytes, index);
  FreeBlock* entry = static_cast<FreeBlock*>(block);
  lock();
  entry->next = free_lists[index];
  free_lists[index] = entry;
  stats.allocated -= int64_t(block_bytes);
  unlock();
}

extern "C" void tpk_empty_cache(void) {
  Detached detached;
  lock();
  detach_all(&detached);
  unlock();
  release(detached);
}

extern "C" void tpk_memory(tpk_memory_stats* out) {
  lock();
  *out = stats;
  unlock();
}

extern "C" void tpk_memory_reset_peak(void) {
  lock();
  stats.allocated_peak = stats.allocated;
  stats.reserved_peak = stats.reserved;
  unlock();
}
