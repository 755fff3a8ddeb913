// An array that grows without touching memory it does not use yet: large blocks are moved by the
// page tables (realloc), so that a reader's peak is the size of its result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace rankwise {

template <class T>
class Growing {
  public:
    Growing() = default;
    Growing(const Growing&) = delete;
    Growing& operator=(const Growing&) = delete;
    ~Growing() { std::free(data_); }

    T* data() { return data_; }
    const T* data() const { return data_; }
    size_t size() const { return size_; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }

    // New entries are uninitialised. When room is short it is made for `expected` entries.
    void resize(size_t n, double expected = 0) {
        if (n > capacity_) {
            const double goal = std::max(1.5 * static_cast<double>(capacity_), expected);
            set_capacity(std::max(n, goal < 1e12 ? static_cast<size_t>(goal) : n));
        }
        size_ = n;
    }

    void push_back(T value) {
        resize(size_ + 1);
        data_[size_ - 1] = value;
    }

    // Gives the memory away (to be released with free), cut to the entries in use.
    T* release() {
        if (capacity_ > size_) set_capacity(size_ == 0 ? 1 : size_);
        T* data = data_;
        data_ = nullptr;
        size_ = capacity_ = 0;
        return data;
    }

  private:
    void set_capacity(size_t n) {
        if (n > SIZE_MAX / 2 / sizeof(T)) throw std::bad_alloc();
        T* moved = static_cast<T*>(std::realloc(data_, n * sizeof(T)));
        if (moved == nullptr) throw std::bad_alloc();
        data_ = moved;
        capacity_ = n;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
        // Two megabytes at a time: fewer page faults while the array is filled.
        constexpr uintptr_t huge = uintptr_t{2} << 20;
        const uintptr_t begin = (reinterpret_cast<uintptr_t>(data_) + huge - 1) & ~(huge - 1);
        const uintptr_t end = (reinterpret_cast<uintptr_t>(data_) + n * sizeof(T)) & ~(huge - 1);
        if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
    }

    T* data_ = nullptr;
    size_t size_ = 0;
    size_t capacity_ = 0;
};

}  // namespace rankwise
