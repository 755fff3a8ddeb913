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

// The structured bound of average precision (SVM-MAP): the score of a ranking is the mean of
// y (s_r - s_n) over pairs of a relevant and another document, y = 1 where the relevant one stands
// first and -1 elsewhere.
//
// In the most violated ranking both kinds stand by falling score. Where the j-th of the others goes
// among the relevant can be chosen for each j alone: standing before the relevant number k
// changes precision there by (j / (j + k) - (j - 1) / (j + k - 1)), whatever the rest does, and
// the best places never cross (Yue et al. 2007). O(relevant x others).
class StructuredApLoss : public QueryLoss {
  public:
    StructuredApLoss(const double* relevant, const int64_t* offsets, int64_t n_queries,
                     const double* weight)
        : QueryLoss(offsets, n_queries),
          relevant_(relevant, relevant + offsets[n_queries]),
          weight_(weight, weight + n_queries) {}

    void evaluate(int64_t q, const double* s, double* value, double* gradient,
                  double* curvature) override {
        std::fill(gradient, gradient + size(q), 0.0);
        std::fill(curvature, curvature + size(q), 0.0);
        if (value) *value = 0;
        thread_local std::vector<int64_t> good, rest;
        thread_local std::vector<double> before;
        good.clear(), rest.clear();
        const double* y = relevant_.data() + begin(q);
        for (int64_t i = 0; i < size(q); ++i)
            if (!std::isnan(y[i])) (y[i] > 0 ? good : rest).push_back(i);
        const auto n_good = static_cast<int64_t>(good.size());
        const auto n_rest = static_cast<int64_t>(rest.size());
        if (n_good == 0 || n_rest == 0 || !(weight_[q] > 0)) return;
        const auto better = [&](int64_t i, int64_t j) {
            return s[i] != s[j] ? s[i] > s[j] : i < j;
        };
        std::sort(good.begin(), good.end(), better);
        std::sort(rest.begin(), rest.end(), better);
        const double inverse = 1.0 / static_cast<double>(n_good);
        const double pair = 2.0 * inverse / static_cast<double>(n_rest) * weight_[q];
        before.assign(n_good, 0.0);
        double total = 0, largest = 0;
        for (int64_t j = 1; j <= n_rest; ++j) {
            const double score = s[rest[j - 1]];
            // The sum over the relevant that it stands before, from the last one up.
            double sum = 0, best = 0;
            int64_t first = n_good;
            for (int64_t k = n_good; k >= 1; --k) {
                const double after = static_cast<double>(j + k);
                const double lost = inverse * static_cast<double>(k) / (after * (after - 1));
                sum += weight_[q] * lost - pair * (s[good[k - 1]] - score);
                if (sum > best) best = sum, first = k - 1;
            }
            total += best;
            gradient[rest[j - 1]] = pair * static_cast<double>(n_good - first);
            if (first < n_good) before[first] += 1;
        }
        double passed = 0;
        for (int64_t k = 0; k < n_good; ++k) {
            passed += before[k];
            gradient[good[k]] = -pair * passed;
        }
        share(good, s, gradient);
        share(rest, s, gradient);
        for (int64_t i = 0; i < size(q); ++i) largest = std::max(largest, std::abs(gradient[i]));
        for (const auto* rows : {&good, &rest})
            for (const int64_t row : *rows) curvature[row] = largest;
        if (value) *value = total;
    }

    int64_t work() const override { return n_docs() * 100; }

  private:
    // Documents of equal score share their gradient.
    static void share(const std::vector<int64_t>& order, const double* s, double* gradient) {
        for (size_t i = 0, last; i < order.size(); i = last) {
            double sum = 0;
            for (last = i; last < order.size() && s[order[last]] == s[order[i]]; ++last)
                sum += gradient[order[last]];
            for (size_t p = i; p < last; ++p)
                gradient[order[p]] = sum / static_cast<double>(last - i);
        }
    }

    std::vector<double> relevant_, weight_;
};

}  // namespace rankwise
