// LETOR text from judged lists, with the shortest digits that read back to the same value.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parallel.hpp"
#include "text.hpp"

namespace rankwise {

template <class T>
void append_shortest(std::string& out, T value) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    out.append(digits, end);
}

inline void append_number(std::string& out, double value) {
    if (value != value) {
        out += "nan";
    } else if (std::fabs(value) < 1e15 && value == std::floor(value) &&
               !(value == 0 && std::signbit(value))) {
        append_shortest(out, static_cast<int64_t>(value));
    } else {
        append_shortest(out, value);
    }
}

// A float's shortest digits are read as a double and rounded again. In the rare case that this
// ends at the neighbour, the digits of the double are written.
inline void append_number(std::string& out, float value) {
    if (value != value || (std::fabs(value) < 1e15f && value == std::floor(value))) {
        append_number(out, static_cast<double>(value));
        return;
    }
    const size_t begin = out.size();
    append_shortest(out, value);
    double back = 0;
    std::from_chars(out.data() + begin, out.data() + out.size(), back);
    if (static_cast<float>(back) != value) {
        out.resize(begin);
        append_shortest(out, static_cast<double>(value));
    }
}

inline void append_feature(std::string& out, int64_t column) {
    out += ' ';
    append_shortest(out, column + 1);
    out += ':';
}

template <class T>
struct DenseRows {
    const T* X;
    int64_t n_features;

    void append(std::string& out, int64_t row) const {
        const T* values = X + row * n_features;
        for (int64_t j = 0; j < n_features; ++j) {
            append_feature(out, j);
            append_number(out, values[j]);
        }
    }
};

// Zeros are left out; the first row names the last feature in any case, so that the width of the
// matrix is in the text.
template <class T, class I>
struct SparseRows {
    const T* values;
    const I* columns;
    const I* starts;
    int64_t n_features;

    void append(std::string& out, int64_t row) const {
        int64_t last = -1;
        for (I k = starts[row]; k < starts[row + 1]; ++k) {
            if (values[k] == T(0)) continue;
            last = static_cast<int64_t>(columns[k]);
            append_feature(out, last);
            append_number(out, values[k]);
        }
        if (row == 0 && last != n_features - 1) {
            append_feature(out, n_features - 1);
            out += '0';
        }
    }
};

// Lines of the rows [begin, end). `ids` holds one id per row and `comments` one comment per row
// (with its '#', or empty), both for these rows only; no comments at all is an empty vector.
template <class Rows>
std::string format_letor(const Rows& rows, const double* labels,
                         const std::vector<std::string_view>& ids,
                         const std::vector<std::string_view>& comments, int64_t begin, int64_t end,
                         int n_threads) {
    const int64_t step = 64, n = (end - begin + step - 1) / step;
    std::vector<std::string> parts(n);
    parallel_for(n, (end - begin) * 1000, n_threads, [&](int64_t part) {
        std::string& out = parts[part];
        const int64_t stop = std::min(end, begin + (part + 1) * step);
        for (int64_t row = begin + part * step; row < stop; ++row) {
            append_number(out, labels[row]);
            out += " qid:";
            out += ids[row - begin];
            rows.append(out, row);
            if (!comments.empty() && !comments[row - begin].empty()) {
                out += ' ';
                out += comments[row - begin];
            }
            out += '\n';
        }
    });
    size_t size = 0;
    for (const std::string& part : parts) size += part.size();
    std::string text;
    text.reserve(size);
    for (const std::string& part : parts) text += part;
    return text;
}

}  // namespace rankwise
