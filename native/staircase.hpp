// The best merge of two sorted lists of documents into places, exactly.
//
// X are the documents of the higher level, Y those of the lower, each by falling score. "X number p
// stands before Y number q" is a cell (p, q); the cells of a merge are closed towards smaller p and
// larger q, and the cost of a merge is that of Y first plus the sum over its cells of
//
//   w(p, q) = (a_s - a_s+1) db - (c_s - c_s+1) (fx[p] - fy[q]),   s = p + q,
//
// a minimum-weight staircase. Cells that some best merge must hold, and cells that it need not, are
// found from envelopes of the ratio of the two differences (a closed set on which w <= 0 can only
// help, and the reverse), and a dynamic programme runs in the band that is left.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace rankwise {

class Staircase {
  public:
    // chosen[s] = 1 where place s gets a document of X. Places are weighted by a and c, falling.
    void solve(const double* a, const double* c, double db, double bx, double by, const double* fx,
               int64_t nx, const double* fy, int64_t ny, uint8_t* chosen) {
        band(a, c, db, fx, nx, fy, ny);
        const int64_t n = nx + ny;
        reversed_.assign(fy, fy + ny);
        std::reverse(reversed_.begin(), reversed_.end());
        value_.assign(nx + 2, kFar), next_.assign(nx + 2, kFar);
        first_.resize(n + 1), low_.resize(n + 1);
        steps_.clear();
        value_[1] = 0;  // value_[p + 1]: cost of the places filled so far with p from X
        int64_t lo = 0, hi = 0;
        for (int64_t s = 0; s < n; ++s) {
            const int64_t last_lo = lo, last_hi = hi;
            lo = std::max(lo, s + 1 - ny);
            while (lo < nx && s - lo >= 0 && s - lo < ny && lo < least_[s - lo]) ++lo;
            hi = std::min(hi + 1, nx);
            while (hi > lo && s + 1 - hi < ny && hi > most_[s + 1 - hi]) --hi;
            first_[s] = static_cast<int64_t>(steps_.size()), low_[s] = lo;
            steps_.resize(steps_.size() + hi - lo + 1);
            const double ay = a[s] * by, ax = a[s] * bx, place = c[s];
            // Y number s - p is reversed_[ny - 1 - s + p].
            for (int64_t p = lo; p <= hi; ++p) {
                const bool y = s - p >= 0 && s - p < ny && p >= last_lo && p <= last_hi;
                const bool x = p > last_lo && p - 1 <= last_hi;
                const double from_y =
                    y ? value_[p + 1] + ay - place * reversed_[ny - 1 - s + p] : kFar;
                const double from_x = x ? value_[p] + ax - place * fx[p - 1] : kFar;
                steps_[first_[s] + p - lo] = from_x < from_y;
                next_[p + 1] = std::min(from_x, from_y);
            }
            std::swap(value_, next_);
        }
        int64_t p = nx;
        for (int64_t s = n - 1; s >= 0; --s) {
            chosen[s] = steps_[first_[s] + p - low_[s]];
            p -= chosen[s];
        }
    }

  private:
    static constexpr double kFar = 1e300;

    // least_[q] and most_[q]: how many X some best merge has before Y number q.
    void band(const double* a, const double* c, double db, const double* fx, int64_t nx,
              const double* fy, int64_t ny) {
        const int64_t cuts = nx + ny - 1;
        constexpr double inf = std::numeric_limits<double>::infinity();
        inner_.resize(cuts), outer_.resize(cuts);
        for (int64_t s = 0; s < cuts; ++s) {
            const double alpha = (a[s] - a[s + 1]) * db, gamma = c[s] - c[s + 1];
            inner_[s] = gamma > 0 ? alpha / gamma : alpha > 0 ? inf : -inf;
            outer_[s] = gamma > 0 ? alpha / gamma : inf;
        }
        // Rows: a rising envelope.
        rising_ = inner_, falling_ = outer_;
        for (int64_t s = 1; s < cuts; ++s) rising_[s] = std::max(rising_[s], rising_[s - 1]);
        for (int64_t s = cuts - 2; s >= 0; --s)
            falling_[s] = std::min(falling_[s], falling_[s + 1]);
        least_.resize(ny), most_.resize(ny);
        for (int64_t q = 0; q < ny; ++q) {
            least_[q] = first_false(nx, [&](int64_t p) { return fx[p] - fy[q] >= rising_[p + q]; });
            most_[q] = first_false(nx, [&](int64_t p) { return fx[p] - fy[q] > falling_[p + q]; });
        }
        for (int64_t q = ny - 2; q >= 0; --q) least_[q] = std::min(least_[q], least_[q + 1]);
        for (int64_t q = 1; q < ny; ++q) most_[q] = std::max(most_[q], most_[q - 1]);
        // Columns: a falling one.
        rising_ = inner_, falling_ = outer_;
        for (int64_t s = cuts - 2; s >= 0; --s) rising_[s] = std::max(rising_[s], rising_[s + 1]);
        for (int64_t s = 1; s < cuts; ++s) falling_[s] = std::min(falling_[s], falling_[s - 1]);
        start_.resize(nx), stop_.resize(nx);
        for (int64_t p = 0; p < nx; ++p) {
            start_[p] = first_false(ny, [&](int64_t q) { return fx[p] - fy[q] < rising_[p + q]; });
            stop_[p] = first_false(ny, [&](int64_t q) { return fx[p] - fy[q] <= falling_[p + q]; });
        }
        for (int64_t p = 1; p < nx; ++p) start_[p] = std::max(start_[p], start_[p - 1]);
        for (int64_t p = nx - 2; p >= 0; --p) stop_[p] = std::min(stop_[p], stop_[p + 1]);
        int64_t in = 0, out = 0;
        for (int64_t q = 0; q < ny; ++q) {
            while (in < nx && start_[in] <= q) ++in;
            while (out < nx && stop_[out] <= q) ++out;
            least_[q] = std::max(least_[q], in);
            most_[q] = std::max(std::min(most_[q], out), least_[q]);
        }
        // Rounding must not make the borders cross.
        for (int64_t q = 1; q < ny; ++q) most_[q] = std::max(most_[q], most_[q - 1]);
    }

    // The first number of 0 ... n - 1 for which a condition that is never true again fails.
    template <class Condition>
    static int64_t first_false(int64_t n, Condition&& holds) {
        int64_t low = 0, high = n;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (holds(middle))
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    std::vector<double> reversed_, value_, next_, inner_, outer_, rising_, falling_;
    std::vector<int64_t> least_, most_, start_, stop_, first_, low_;
    std::vector<uint8_t> steps_;
};

}  // namespace rankwise
