// The allocator: alignment, reuse, statistics, bounds, many threads, fork.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "check.h"

// Under AddressSanitizer an impossible request must return NULL as it does otherwise.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

namespace {

void test_alignment_and_reuse() {
  for (size_t bytes : {size_t(0), size_t(1), size_t(63), size_t(64), size_t(65), size_t(1000), size_t(1025),
                       size_t(4097), size_t(1) << 20, (size_t(5) << 20) + 1}) {
    void* block = tpk_alloc(bytes);
    check::that(block != nullptr, "alloc of %zu bytes returned NULL", bytes);
    check::that(reinterpret_cast<uintptr_t>(block) % 64 == 0, "block of %zu bytes is not aligned to 64", bytes);
    if (bytes) std::memset(block, 0xab, bytes);
    tpk_free(block, bytes);
    void* again = tpk_alloc(bytes);
    check::that(again == block, "block of %zu bytes was not reused", bytes);
    tpk_free(again, bytes);
  }
  tpk_free(nullptr, 100);
}

void test_every_size_fits_its_class() {
  check::Random random;
  std::vector<std::pair<char*, size_t>> live;
  for (int i = 0; i < 4000; i++) {
    size_t bytes = size_t(random.next() % (i % 10 ? 3000 : 3000000));
    char* block = static_cast<char*>(tpk_alloc(bytes));
    if (bytes) block[0] = char(i), block[bytes - 1] = char(i);
    live.push_back({block, bytes});
    if (live.size() > 50) {
      size_t k = size_t(random.next() % live.size());
      tpk_free(live[k].first, live[k].second);
      live.erase(live.begin() + long(k));
    }
  }
  for (auto& block : live) tpk_free(block.first, block.second);
}

void test_statistics() {
  tpk_empty_cache();
  tpk_memory_stats before, with, after;
  tpk_memory(&before);
  check::that(before.reserved == before.allocated, "an empty cache still reserves memory");
  tpk_memory_reset_peak();
  void* block = tpk_alloc(100000);
  tpk_memory(&with);
  check::that(with.allocated >= before.allocated + 100000 && with.allocated <= before.allocated + 112640,
              "allocated grew by %lld for 100000 bytes", (long long)(with.allocated - before.allocated));
  tpk_free(block, 100000);
  tpk_memory(&after);
  check::that(after.allocated == before.allocated, "allocated did not come back");
  check::that(after.allocated_peak == with.allocated, "the peak was forgotten");
  check::that(after.reserved == with.reserved, "a freed block left the cache");
  check::that(after.allocations == before.allocations + 1, "allocations are not counted");
  tpk_free(tpk_alloc(100000), 100000);
  tpk_memory(&with);
  check::that(with.cache_hits == after.cache_hits + 1, "cache hits are not counted");
  tpk_empty_cache();
  tpk_memory_reset_peak();
  tpk_memory(&after);
  check::that(after.reserved == after.allocated && after.reserved_peak == after.reserved, "empty_cache left blocks");
}

void test_bounds() {
  check::that(tpk_alloc(size_t(-1)) == nullptr, "the whole address space was granted");
  check::that(tpk_alloc(size_t(1) << 46) == nullptr, "64 TiB were granted");
  tpk_empty_cache();
  tpk_memory_reset_peak();
  // Many sizes in turn, none of them live for long: the cache may not keep them all.
  for (int i = 0; i < 64; i++) {
    size_t bytes = (size_t(16) << 20) + (size_t(i) << 22);
    tpk_free(tpk_alloc(bytes), bytes);
  }
  tpk_memory_stats stats;
  tpk_memory(&stats);
  check::that(stats.reserved - stats.allocated <= int64_t(300) << 20, "the cache holds %lld MiB after a sweep",
              (long long)((stats.reserved - stats.allocated) >> 20));
  tpk_empty_cache();
}

void churn(uint64_t seed) {
  check::Random random;
  random.state += seed;
  for (int i = 0; i < 20000; i++) {
    size_t bytes = 8 + size_t(random.next() % 5000);
    uint64_t* block = static_cast<uint64_t*>(tpk_alloc(bytes));
    *block = seed;
    if (i % 64 == 0) std::this_thread::yield();
    check::that(*block == seed, "two threads own one block");
    tpk_free(block, bytes);
  }
}

void test_threads_and_fork() {
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i <= 4; i++) threads.emplace_back(churn, i);
  for (int i = 0; i < 5; i++) { // forks while others hold the lock now and then
    pid_t child = fork();
    if (!child) {
      alarm(20);
      void* block = tpk_alloc(256);
      tpk_free(block, 256);
      _exit(block ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    check::that(status == 0, "allocator in a forked child: status %d", status);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main() {
  test_alignment_and_reuse();
  test_every_size_fits_its_class();
  test_statistics();
  test_bounds();
  test_threads_and_fork();
  return check::finish("alloc");
}
