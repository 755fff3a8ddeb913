// The structured bound of a ranking measure (DORM): how much the most violated ranking of a query
// is preferred to the reference, in score plus in measure lost.
#pragma once

#include "assignment.hpp"
#include "losses.hpp"

namespace rankwise {

// loss = max over rankings pi of  sum_i a_i (b_ref(i) - b_pi(i)) + sum_i c_i (f_pi(i) - f_ref(i)).
//
// `measure` (a) and `place` (c) hold the weights of a query's places where the query's documents
// are, and the reference is the order by gain; documents of equal gain stand in the order of rows,
// or (`sorted`) of scores. The gradient of a document is the c of its place under pi less that of
// its place in the reference, each averaged over documents equal in gain and score: it does not
// depend on the order of rows. The function is piecewise linear; as curvature every document gets
// the largest gradient of its query, so that a Newton step is at most 1.
class StructuredLoss : public QueryLoss {
  public:
    StructuredLoss(const double* gain, const int64_t* offsets, int64_t n_queries,
                   const double* measure, const double* place, const double* weight, bool sorted)
        : QueryLoss(offsets, n_queries),
          gain_(gain, gain + offsets[n_queries]),
          measure_(measure, measure + offsets[n_queries]),
          place_(place, place + offsets[n_queries]),
          weight_(weight, weight + n_queries),
          sorted_(sorted) {}

    int64_t work() const override { return n_docs() * 200; }

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        std::fill(gradient, gradient + size(q), 0.0);
        std::fill(curvature, curvature + size(q), 0.0);
        if (value) *value = 0;
        thread_local Workspace w;
        if (!prepare(q, s, w)) return;
        const int64_t n = static_cast<int64_t>(w.row.size()), at = begin(q);
        const double *a = measure_.data() + at, *c = place_.data() + at;
        w.assignment.solve(w.score.data(), w.gain.data(), n, a, c, w.ranking.data());
        double lost = 0;
        for (int64_t i = 0; i < n; ++i) {
            lost += a[i] * (w.gain[w.order[i]] - w.gain[w.ranking[i]]);
            w.pulled[w.ranking[i]] = c[i];
        }
        average_equals(w, w.pulled);
        reference(q, w);
        double moved = 0, largest = 0;
        for (int64_t j = 0; j < n; ++j) {
            const double g = w.pulled[j] - w.stands[j];
            moved += g * w.score[j];
            gradient[w.row[j]] = weight_[q] * g;
            largest = std::max(largest, std::abs(weight_[q] * g));
        }
        for (const int64_t row : w.row) curvature[row] = largest;
        if (value) *value = weight_[q] * std::max(0.0, lost + moved);
    }

    // Keeps the reference as it stands at the scores s: the loss is convex from here on. `out`
    // gets the c of each document's place in it, times the query's weight.
    void hold(const double* s, double* out, int n_threads) {
        held_.clear();
        std::vector<double> kept(gain_.size(), 0.0);
        parallel_for(n_queries(), n_docs() * 20, n_threads, [&](int64_t q) {
            thread_local Workspace w;
            const int64_t at = begin(q);
            std::fill(out + at, out + at + size(q), 0.0);
            if (!prepare(q, s + at, w)) return;
            reference(q, w);
            for (size_t j = 0; j < w.row.size(); ++j) {
                kept[at + w.row[j]] = w.stands[j];
                out[at + w.row[j]] = weight_[q] * w.stands[j];
            }
        });
        held_ = std::move(kept);
    }
    void release() { held_.clear(); }

  private:
    // The documents of a query that have a label, by position among them.
    struct Workspace {
        std::vector<int64_t> row, order, ranking;
        std::vector<double> score, gain, pulled, stands;
        Assignment assignment;
    };

    // False where no order of the query can lose anything.
    bool prepare(int64_t q, const double* s, Workspace& w) const {
        const double* b = gain_.data() + begin(q);
        w.row.clear(), w.score.clear(), w.gain.clear();
        bool differ = false;
        for (int64_t j = 0; j < size(q); ++j) {
            if (std::isnan(b[j])) continue;
            w.row.push_back(j), w.score.push_back(s[j]), w.gain.push_back(b[j]);
            differ |= b[j] != w.gain[0];
        }
        if (!differ || !(weight_[q] > 0)) return false;
        const size_t n = w.row.size();
        w.order.resize(n), w.ranking.resize(n), w.pulled.resize(n), w.stands.resize(n);
        for (size_t j = 0; j < n; ++j) w.order[j] = static_cast<int64_t>(j);
        std::sort(w.order.begin(), w.order.end(), [&](int64_t i, int64_t j) {
            if (w.gain[i] != w.gain[j]) return w.gain[i] > w.gain[j];
            return w.score[i] != w.score[j] ? w.score[i] > w.score[j] : i < j;
        });
        return true;
    }

    // The mean over documents of equal gain and score, which are neighbours in `order`.
    static void average_equals(const Workspace& w, std::vector<double>& column) {
        const size_t n = w.order.size();
        for (size_t i = 0, last; i < n; i = last) {
            const int64_t first = w.order[i];
            double sum = 0;
            for (last = i; last < n; ++last) {
                const int64_t j = w.order[last];
                if (w.gain[j] != w.gain[first] || w.score[j] != w.score[first]) break;
                sum += column[j];
            }
            if (last - i == 1) continue;
            for (size_t p = i; p < last; ++p)
                column[w.order[p]] = sum / static_cast<double>(last - i);
        }
    }

    // The c of each document's place in the reference.
    void reference(int64_t q, Workspace& w) const {
        const double* c = place_.data() + begin(q);
        const size_t n = w.row.size();
        if (!held_.empty()) {
            for (size_t j = 0; j < n; ++j) w.stands[j] = held_[begin(q) + w.row[j]];
        } else if (sorted_) {
            for (size_t i = 0; i < n; ++i) w.stands[w.order[i]] = c[i];
            average_equals(w, w.stands);
        } else {
            std::vector<int64_t>& order = w.ranking;  // free by now
            for (size_t j = 0; j < n; ++j) order[j] = static_cast<int64_t>(j);
            std::stable_sort(order.begin(), order.end(),
                             [&](int64_t i, int64_t j) { return w.gain[i] > w.gain[j]; });
            for (size_t i = 0; i < n; ++i) w.stands[order[i]] = c[i];
        }
    }

    std::vector<double> gain_, measure_, place_, weight_, held_;
    bool sorted_;
};

}  // namespace rankwise
