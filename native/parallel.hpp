// Loops over queries, in parallel where OpenMP was found and serial otherwise.
#pragma once

#include <cstdint>
#include <exception>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace rankwise {

// Number of threads to use: the request, or the runtime's own limit when it is 0.
inline int thread_count(int requested) {
#ifdef _OPENMP
    return requested > 0 ? requested : omp_get_max_threads();
#else
    (void)requested;
    return 1;
#endif
}

// Calls body(i) for i in [0, n). `work` is a rough number of elementary steps: small jobs stay on
// the calling thread, where waking the others costs more than it brings. Each i must write to
// its own place only, so that the result does not depend on the number of threads. The first
// exception thrown by a body is thrown again here.
template <class Body>
void parallel_for(int64_t n, int64_t work, int n_threads, Body&& body) {
    const int threads = work < 50'000 ? 1 : thread_count(n_threads);
    if (threads <= 1 || n <= 1) {
        for (int64_t i = 0; i < n; ++i) body(i);
        return;
    }
#ifdef _OPENMP
    std::exception_ptr failure;
    const int64_t chunk = n / (threads * 16) + 1;
#pragma omp parallel for schedule(dynamic, chunk) num_threads(threads)
    for (int64_t i = 0; i < n; ++i) {
        try {
            body(i);
        } catch (...) {
#pragma omp critical(rankwise_failure)
            if (!failure) failure = std::current_exception();
        }
    }
    if (failure) std::rethrow_exception(failure);
#endif
}

}  // namespace rankwise
