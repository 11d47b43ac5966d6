// The thread pool. The caller takes part and could do every chunk alone, so a descheduled worker delays nobody who
// has not given it a chunk; workers spin for a bounded time, then sleep on a futex (elsewhere: condition variable).
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <climits>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>

#include "spin.h"
#include "tpk.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace {

constexpr int kMaxChunks = 256;   // a constant: chunk boundaries must not depend on the number of threads
constexpr int kWorkerSpins = 500; // about 25 us on current processors
constexpr int kCallerSpins = 2000;
constexpr int kMaxThreads = 1024;

#if defined(__linux__)
void wait_while(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}
#else
std::mutex& wait_mutex() {
  static std::mutex* mutex = new std::mutex;
  return *mutex;
}
std::condition_variable& wait_condition() {
  static std::condition_variable* condition = new std::condition_variable;
  return *condition;
}
void wait_while(std::atomic<uint32_t>& word, uint32_t value) {
  std::unique_lock<std::mutex> held(wait_mutex());
  if (word.load() == value) wait_condition().wait(held);
}
void wake(std::atomic<uint32_t>&, int) {
  std::lock_guard<std::mutex> held(wait_mutex());
  wait_condition().notify_all();
}
#endif

struct Pool {
  // epoch << 32 | count << 16 | next chunk. All three in one word: a worker that slept through a job can neither
  // claim a chunk of the next one by mistake nor compare its number with the wrong count.
  alignas(64) std::atomic<uint64_t> ticket{0};
  alignas(64) std::atomic<uint32_t> epoch{0};
  std::atomic<uint32_t> sleepers{0};
  alignas(64) std::atomic<uint32_t> done{0};
  std::atomic<uint32_t> caller_sleeps{0};
  // Written before the ticket is published, read only by those who hold an unfinished chunk of that ticket.
  alignas(64) void (*body)(void*, int64_t, int64_t) = nullptr;
  void* context = nullptr;
  int64_t n = 0, chunk = 0;
  std::atomic<bool> stop{false};
  int workers = 0;
  pthread_t threads[kMaxThreads];
};

std::mutex run_mutex;             // one job at a time; whoever finds it taken runs serially
Pool* pool = nullptr;
Pool* abandoned = nullptr;        // the parent's pool in a forked child: its threads do not exist here
std::atomic<int> thread_count{0}; // 0: not asked yet
thread_local bool inside_region = false;

int usable_processors() {
#if defined(__linux__)
  for (int size = 1024; size <= 1 << 20; size *= 4) {
    cpu_set_t* set = CPU_ALLOC(size);
    if (!set) break;
    int found = sched_getaffinity(0, CPU_ALLOC_SIZE(size), set) ? 0 : CPU_COUNT_S(CPU_ALLOC_SIZE(size), set);
    CPU_FREE(set);
    if (found > 0) return found;
  }
#endif
  int count = int(std::thread::hardware_concurrency());
  return count > 0 ? count : 1;
}

// A child keeps the setting but starts its own threads; a mutex that another thread held would never be released.
void after_fork_in_child() {
  abandoned = pool;
  pool = nullptr;
  new (&run_mutex) std::mutex;
#if !defined(__linux__)
  new (&wait_mutex()) std::mutex;
  new (&wait_condition()) std::condition_variable;
#endif
}
const int fork_registered = pthread_atfork(nullptr, nullptr, after_fork_in_child);

void work(Pool* p, uint32_t epoch) {
  uint64_t ticket = p->ticket.load(std::memory_order_acquire);
  for (;;) {
    const uint32_t next = uint32_t(ticket & 0xffff), count = uint32_t(ticket >> 16) & 0xffff;
    if (uint32_t(ticket >> 32) != epoch || next >= count) return;
    if (!p->ticket.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    const int64_t begin = int64_t(next) * p->chunk;
    const int64_t end = next + 1 == count ? p->n : begin + p->chunk;
    p->body(p->context, begin, end);
    if (p->done.fetch_add(1) + 1 == count && p->caller_sleeps.load()) wake(p->done, 1);
    ticket = p->ticket.load(std::memory_order_acquire);
  }
}

void* worker_main(void* argument) {
  Pool* p = static_cast<Pool*>(argument);
  inside_region = true;
  uint32_t seen = 0;
  for (;;) {
    uint32_t now;
    for (int spins = 0; (now = p->epoch.load()) == seen;) {
      if (++spins < kWorkerSpins) {
        tpk_spin_pause();
        continue;
      }
      p->sleepers.fetch_add(1);
      wait_while(p->epoch, seen);
      p->sleepers.fetch_sub(1);
    }
    if (p->stop.load()) return nullptr;
    seen = now;
    work(p, now);
  }
}

void stop_pool() {
  if (!pool) return;
  pool->stop.store(true);
  pool->epoch.fetch_add(1);
  wake(pool->epoch, INT_MAX);
  for (int i = 0; i < pool->workers; i++) pthread_join(pool->threads[i], nullptr);
  delete pool;
  pool = nullptr;
}

// With run_mutex held. A system that refuses threads leaves a smaller pool, down to the caller alone.
Pool* running_pool(int threads) {
  if (pool) return pool;
  pool = new (std::nothrow) Pool;
  if (!pool) return nullptr;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); // signals belong to the program's own threads
  while (pool->workers < threads - 1 &&
         !pthread_create(&pool->threads[pool->workers], nullptr, worker_main, pool))
    pool->workers++;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return pool;
}

void run(Pool* p, int64_t n, int64_t chunk, int count, void (*body)(void*, int64_t, int64_t), void* context) {
  p->body = body;
  p->context = context;
  p->n = n;
  p->chunk = chunk;
  p->done.store(0, std::memory_order_relaxed);
  const uint32_t epoch = p->epoch.load(std::memory_order_relaxed) + 1;
  p->ticket.store(uint64_t(epoch) << 32 | uint64_t(count) << 16, std::memory_order_release);
  p->epoch.store(epoch);
  if (p->sleepers.load()) wake(p->epoch, count - 1 < p->workers ? count - 1 : p->workers);
  work(p, epoch);
  for (int spins = 0; p->done.load() != uint32_t(count); spins++) {
    if (spins < kCallerSpins) {
      tpk_spin_pause();
      continue;
    }
    p->caller_sleeps.store(1);
    for (uint32_t done; (done = p->done.load()) != uint32_t(count);) wait_while(p->done, done);
    p->caller_sleeps.store(0);
  }
}

}  // namespace

extern "C" int tpk_num_threads(void) {
  int count = thread_count.load(std::memory_order_relaxed);
  if (count > 0) return count;
  int expected = 0, found = usable_processors();
  thread_count.compare_exchange_strong(expected, found < kMaxThreads ? found : kMaxThreads);
  return thread_count.load(std::memory_order_relaxed);
}

extern "C" void tpk_set_num_threads(int n) {
  if (n < 1) n = 1;
  if (n > kMaxThreads) n = kMaxThreads;
  if (inside_region) { // the pool is running this very code: takes effect when it is next started
    thread_count.store(n);
    return;
  }
  std::lock_guard<std::mutex> held(run_mutex);
  if (thread_count.exchange(n) != n || (pool && pool->workers != n - 1)) stop_pool();
}

extern "C" void tpk_parallel(int64_t n, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  int64_t count = n / grain;
  if (count > kMaxChunks) count = kMaxChunks;
  if (count <= 1) return body(context, 0, n);
  int64_t chunk = (n + count - 1) / count;
  if (chunk >= 4096) chunk = (chunk + 63) & ~int64_t(63); // keeps the chunks of a vector loop aligned alike
  count = (n + chunk - 1) / chunk;
  const int threads = tpk_num_threads();
  if (threads > 1 && count > 1 && !inside_region && run_mutex.try_lock()) {
    Pool* p = running_pool(threads);
    if (p && p->workers) {
      inside_region = true;
      run(p, n, chunk, int(count), body, context);
      inside_region = false;
      run_mutex.unlock();
      return;
    }
    run_mutex.unlock();
  }
  for (int64_t begin = 0; begin < n; begin += chunk) body(context, begin, begin + chunk < n ? begin + chunk : n);
}
