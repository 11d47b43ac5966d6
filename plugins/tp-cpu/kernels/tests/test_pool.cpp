// The pool: every element once, boundaries independent of threads, nesting, concurrent callers, fork, stress.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "check.h"

namespace {

struct Count {
  std::vector<std::atomic<int>> hits;
  explicit Count(size_t n) : hits(n) {}
};

void count_body(void* context, int64_t begin, int64_t end) {
  Count* count = static_cast<Count*>(context);
  for (int64_t i = begin; i < end; i++) count->hits[size_t(i)].fetch_add(1);
}

void test_every_element_once() {
  for (int threads : {1, 2, 3, 8}) {
    tpk_set_num_threads(threads);
    check::that(tpk_num_threads() == threads, "asked for %d threads, got %d", threads, tpk_num_threads());
    for (int64_t n : {0, 1, 7, 64, 1000, 4097, 100003})
      for (int64_t grain : {1, 3, 64, 5000}) {
        Count count{size_t(n)};
        tpk_parallel(n, grain, count_body, &count);
        for (int64_t i = 0; i < n; i++)
          check::that(count.hits[size_t(i)] == 1, "n=%lld grain=%lld threads=%d: element %lld ran %d times",
                      (long long)n, (long long)grain, threads, (long long)i, count.hits[size_t(i)].load());
      }
  }
}

struct Bounds {
  std::mutex mutex;
  std::set<std::pair<int64_t, int64_t>> seen;
};

void bounds_body(void* context, int64_t begin, int64_t end) {
  Bounds* bounds = static_cast<Bounds*>(context);
  std::lock_guard<std::mutex> held(bounds->mutex);
  bounds->seen.insert({begin, end});
}

void test_boundaries() {
  for (int64_t n : {100, 4096, 1000003})
    for (int64_t grain : {1, 17, 4096}) {
      Bounds one, many;
      tpk_set_num_threads(1);
      tpk_parallel(n, grain, bounds_body, &one);
      tpk_set_num_threads(4);
      tpk_parallel(n, grain, bounds_body, &many);
      check::that(one.seen == many.seen, "boundaries for n=%lld depend on the threads", (long long)n);
      std::set<int64_t> slots; // kernels number their partial results by begin / grain
      for (auto& chunk : one.seen) {
        slots.insert(chunk.first / grain);
        check::that(chunk.second == n || chunk.second - chunk.first >= grain, "a chunk is smaller than the grain");
      }
      check::that(slots.size() == one.seen.size(), "begin / grain is not unique");
    }
}

void nested_body(void* context, int64_t begin, int64_t end) {
  std::thread::id outer = std::this_thread::get_id();
  for (int64_t i = begin; i < end; i++) {
    struct Inner {
      std::thread::id outer;
      std::atomic<int64_t>* total;
    } inner = {outer, static_cast<std::atomic<int64_t>*>(context)};
    tpk_parallel(100, 1, [](void* c, int64_t b, int64_t e) {
      Inner* in = static_cast<Inner*>(c);
      check::that(std::this_thread::get_id() == in->outer, "a nested region left its thread");
      in->total->fetch_add(e - b);
    }, &inner);
  }
}

void test_nested_and_concurrent() {
  tpk_set_num_threads(4);
  std::atomic<int64_t> total{0};
  tpk_parallel(200, 1, nested_body, &total);
  check::that(total == 20000, "nested regions ran %lld of 20000", (long long)total.load());
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum{0};
  for (int c = 0; c < 4; c++)
    callers.emplace_back([&] {
      for (int i = 0; i < 300; i++)
        tpk_parallel(64, 1, [](void* s, int64_t b, int64_t e) {
          static_cast<std::atomic<int64_t>*>(s)->fetch_add(e - b);
        }, &sum);
    });
  for (int i = 0; i < 20; i++) tpk_set_num_threads(1 + i % 4);
  for (std::thread& caller : callers) caller.join();
  check::that(sum == 4 * 300 * 64, "concurrent callers ran %lld chunks", (long long)sum.load());
}

// Jobs of ever-changing size one after another: a worker late for one job must not touch the next.
void test_stale_workers() {
  tpk_set_num_threads(8);
  for (int i = 0; i < 20000; i++) {
    int64_t n = 2 + i % 37;
    std::atomic<int64_t> mine{0};
    tpk_parallel(n, 1, [](void* s, int64_t b, int64_t e) {
      static_cast<std::atomic<int64_t>*>(s)->fetch_add((e - b) * 1000 + b);
    }, &mine);
    check::that(mine == n * 1000 + n * (n - 1) / 2, "job %d: wrong chunks", i);
    if (i % 5000 == 0) usleep(2000); // lets the workers fall asleep
  }
}

void test_fork() {
  tpk_set_num_threads(4);
  std::atomic<int64_t> warm{0};
  auto body = [](void* s, int64_t b, int64_t e) { static_cast<std::atomic<int64_t>*>(s)->fetch_add(e - b); };
  tpk_parallel(1000, 1, body, &warm);
  for (int i = 0; i < 3; i++) {
    pid_t child = fork();
    if (!child) {
      alarm(20);
      std::atomic<int64_t> sum{0};
      for (int k = 0; k < 100; k++) tpk_parallel(1000, 1, body, &sum);
      _exit(sum == 100000 && tpk_num_threads() == 4 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    check::that(status == 0, "pool in a forked child: status %d", status);
    tpk_parallel(1000, 1, body, &warm);
  }
  check::that(warm == 4000, "the parent's pool after fork ran %lld", (long long)warm.load());
}

}  // namespace

int main() {
  check::that(tpk_num_threads() >= 1, "no threads by default");
  test_every_element_once();
  test_boundaries();
  test_nested_and_concurrent();
  test_stale_workers();
  test_fork();
  tpk_set_num_threads(1);
  return check::finish("pool");
}
