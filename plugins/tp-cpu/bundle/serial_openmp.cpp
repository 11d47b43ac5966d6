// The part of libgomp that oneDNN calls, for exactly one thread.
//
// oneDNN is always called from one thread of our own pool and must never start threads itself: libgomp's do not
// survive fork and stall when a core is taken away. With this library in libgomp's place it cannot, and the wheel needs
// no libgomp on the machine. Code compiled for libgomp's old interface runs the body of a parallel region itself
// between GOMP_parallel_start and GOMP_parallel_end, so nothing is left to do for one thread.

extern "C" {

void GOMP_parallel_start(void (*)(void*), void*, unsigned) {}
void GOMP_parallel_end() {}
void GOMP_barrier() {}

bool GOMP_loop_static_start(long start, long end, long increment, long, long* first, long* last) {
  *first = start;
  *last = end;
  return increment > 0 ? start < end : start > end;
}
bool GOMP_loop_static_next(long*, long*) { return false; }
void GOMP_loop_end_nowait() {}

int omp_get_max_threads() { return 1; }
int omp_get_num_threads() { return 1; }
int omp_get_thread_num() { return 0; }
int omp_in_parallel() { return 0; }
void omp_set_num_threads(int) {}
}
