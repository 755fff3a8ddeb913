// Metrics of the order as a whole: agreement of pairs, rank correlation, inferred precision. They
// read every judged document, so the ranking must have been made with `full`.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "metrics_values.hpp"

namespace rankwise::metrics {

// Distinct labels of the judged documents, descending, and how many documents have each.
struct Levels {
    std::vector<double> label;
    std::vector<int64_t> count;

    explicit Levels(const Ranking& r) {
        for (const double y : r.labels) add(y, 1);
        const int64_t zeros = r.n_judged - static_cast<int64_t>(r.labels.size());
        if (zeros > 0) add(0.0, zeros);
    }

    size_t size() const { return label.size(); }

    size_t index(double y) const {
        const auto at = std::lower_bound(label.begin(), label.end(), y, std::greater<double>());
        return static_cast<size_t>(at - label.begin());
    }

  private:
    void add(double y, int64_t n) {
        if (label.empty() || label.back() != y) {
            label.push_back(y);
            count.push_back(0);
        }
        count.back() += n;
    }
};

// Numbers of documents by level, with sums over all better levels in O(log levels).
class Counter {
  public:
    explicit Counter(size_t n) : tree_(n + 1, 0) {}

    void add(size_t level) {
        for (size_t i = level + 1; i < tree_.size(); i += i & (~i + 1)) ++tree_[i];
    }

    // Documents of levels before `level`, those with larger labels.
    int64_t better(size_t level) const {
        int64_t sum = 0;
        for (size_t i = level; i > 0; i -= i & (~i + 1)) sum += tree_[i];
        return sum;
    }

  private:
    std::vector<int64_t> tree_;
};

// Pairs of judged documents with different labels.
struct Pairs {
    double all = 0.0;          // all of them
    double ranked = 0.0;       // both retrieved
    double right = 0.0;        // both retrieved, the better one above
    double tied = 0.0;         // both retrieved, with equal scores
    double missed = 0.0;       // the better one retrieved, the other not
    double n = 0.0;            // judged documents retrieved
    double tied_scores = 0.0;  // pairs of judged retrieved documents with equal scores
    double tied_labels = 0.0;  // and with equal labels
};

inline double choose2(int64_t n) {
    return 0.5 * static_cast<double>(n) * static_cast<double>(n - 1);
}

inline double different_pairs(const std::vector<int64_t>& counts) {
    int64_t n = 0;
    double equal = 0.0;
    for (const int64_t c : counts) n += c, equal += choose2(c);
    return choose2(n) - equal;
}

inline Pairs count_pairs(const Ranking& r, const Levels& levels) {
    Pairs p;
    Counter above(levels.size());
    std::vector<int64_t> retrieved(levels.size(), 0), block(levels.size(), 0);
    std::vector<size_t> members;
    for_blocks(r, [&](size_t a, size_t b) {
        members.clear();
        for (size_t i = a; i < b; ++i)
            if (is_judged(r.entries[i].label)) members.push_back(levels.index(r.entries[i].label));
        for (const size_t l : members) p.right += static_cast<double>(above.better(l));
        for (const size_t l : members) above.add(l), ++retrieved[l], ++block[l];
        const auto size = static_cast<int64_t>(members.size());
        double equal = 0.0;
        for (const size_t l : members) equal += choose2(block[l]), block[l] = 0;
        p.tied += choose2(size) - equal;
        p.tied_scores += choose2(size);
        return true;
    });
    int64_t n = 0, better = 0;
    for (size_t l = 0; l < levels.size(); ++l) {
        p.missed +=
            static_cast<double>(better) * static_cast<double>(levels.count[l] - retrieved[l]);
        better += retrieved[l];
        n += retrieved[l];
        p.tied_labels += choose2(retrieved[l]);
    }
    p.n = static_cast<double>(n);
    p.all = different_pairs(levels.count);
    p.ranked = different_pairs(retrieved);
    return p;
}

// Share of the pairs with different labels that are ranked right; a tie is half right. Pairs of
// which neither document was retrieved are wrong.
inline double pairwise_accuracy(const Request& m, const Ranking& r) {
    const Levels levels(r);
    if (levels.size() < 2) return m.empty;
    const Pairs p = count_pairs(r, levels);
    return (p.right + 0.5 * p.tied + p.missed) / p.all;
}

// The same for relevant against not relevant documents.
inline double auc(const Request& m, const Ranking& r) {
    const int64_t R = count_relevant(m, r), N = r.n_judged - R;
    if (R == 0 || N == 0) return m.empty;
    double right = 0.0;
    int64_t above = 0;  // nonrelevant documents retrieved so far
    for_blocks(r, [&](size_t a, size_t b) {
        const int64_t relevant = block_relevant(m, r, a, b);
        int64_t other = 0;
        for (size_t i = a; i < b; ++i)
            other += is_judged(r.entries[i].label) && !m.relevant(r.entries[i].label);
        right += static_cast<double>(relevant) *
                 (static_cast<double>(N - above - other) + 0.5 * static_cast<double>(other));
        above += other;
        return true;
    });
    return right / (static_cast<double>(R) * static_cast<double>(N));
}

inline double tau_a(const Request& m, const Ranking& r) {
    const Levels levels(r);
    if (levels.size() < 2) return m.empty;
    const Pairs p = count_pairs(r, levels);
    if (p.n < 2.0) return 0.0;
    return (2.0 * p.right + p.tied - p.ranked) / (0.5 * p.n * (p.n - 1.0));
}

inline double tau_b(const Request& m, const Ranking& r) {
    const Levels levels(r);
    if (levels.size() < 2) return m.empty;
    const Pairs p = count_pairs(r, levels);
    const double all = 0.5 * p.n * (p.n - 1.0);
    const double scale = std::sqrt(all - p.tied_labels) * std::sqrt(all - p.tied_scores);
    return scale > 0.0 ? (2.0 * p.right + p.tied - p.ranked) / scale : 0.0;
}

// Pearson's correlation of the mid-ranks of scores and labels.
inline double rho(const Request& m, const Ranking& r) {
    const Levels levels(r);
    if (levels.size() < 2) return m.empty;
    std::vector<int64_t> retrieved(levels.size(), 0);
    int64_t n = 0;
    for (const Entry& e : r.entries)
        if (is_judged(e.label)) ++retrieved[levels.index(e.label)], ++n;
    // Mid-ranks measured from the middle of the list, so that their means are 0.
    const double middle = 0.5 * static_cast<double>(n + 1);
    std::vector<double> label_rank(levels.size());
    double var_label = 0.0, var_score = 0.0, covariance = 0.0;
    int64_t before = 0;
    for (size_t l = 0; l < levels.size(); ++l) {
        label_rank[l] =
            static_cast<double>(before) + 0.5 * static_cast<double>(retrieved[l] + 1) - middle;
        var_label += static_cast<double>(retrieved[l]) * label_rank[l] * label_rank[l];
        before += retrieved[l];
    }
    before = 0;
    for_blocks(r, [&](size_t a, size_t b) {
        int64_t size = 0;
        double sum = 0.0;
        for (size_t i = a; i < b; ++i)
            if (is_judged(r.entries[i].label))
                ++size, sum += label_rank[levels.index(r.entries[i].label)];
        const double rank =
            static_cast<double>(before) + 0.5 * static_cast<double>(size + 1) - middle;
        var_score += static_cast<double>(size) * rank * rank;
        covariance += sum * rank;
        before += size;
        return true;
    });
    const double scale = std::sqrt(var_label) * std::sqrt(var_score);
    return scale > 0.0 ? std::clamp(covariance / scale, -1.0, 1.0) : 0.0;
}

// --- inferred average precision ------------------------------------------------------------

// Documents as infAP sees them: labels below 0 were pooled and not judged, NaN was not pooled.
struct Pool {
    int64_t relevant = 0, other = 0, unjudged = 0;

    void add(const Request& m, double label) {
        relevant += m.relevant(label);
        other += label >= 0.0 && !m.relevant(label);
        unjudged += label < 0.0;
    }
};

constexpr double kInferredEpsilon = 1e-5;  // trec_eval's

// Expected precision at a relevant document at place `rank`, given the documents above it.
inline double inferred_precision(double relevant, double other, double unjudged, double rank) {
    if (rank == 1.0) return 1.0;
    const double judged = relevant + other;
    return 1.0 / rank + (judged + unjudged) / rank * (relevant + kInferredEpsilon) /
                            (judged + 2.0 * kInferredEpsilon);
}

// A block of `tied` documents after `before`: the expected sum over its relevant documents. Of the
// j - 1 documents above place j in the block, the number judged is hypergeometric; given it,
// the relevant and the pooled ones enter by their means.
inline double inferred_block(const Pool& above, const Pool& block, int64_t before, int64_t tied) {
    const int64_t judged = block.relevant - 1 + block.other, rest = tied - 1 - judged;
    const double share =
        judged > 0 ? static_cast<double>(block.relevant - 1) / static_cast<double>(judged) : 0.0;
    const double pooled =
        rest > 0 ? static_cast<double>(block.unjudged) / static_cast<double>(rest) : 0.0;
    // chance[t]: t of the first j - 1 other documents are judged.
    std::vector<double> chance(static_cast<size_t>(judged) + 1, 0.0);
    chance[0] = 1.0;
    double sum = 0.0;
    for (int64_t j = 0; j < tied; ++j) {
        for (int64_t t = std::max<int64_t>(0, j - rest); t <= std::min(j, judged); ++t) {
            const auto dt = static_cast<double>(t);
            sum += chance[t] *
                   inferred_precision(
                       static_cast<double>(above.relevant) + dt * share,
                       static_cast<double>(above.other) + dt * (1.0 - share),
                       static_cast<double>(above.unjudged) + static_cast<double>(j - t) * pooled,
                       static_cast<double>(before + j + 1));
        }
        const auto left = static_cast<double>(tied - 1 - j);
        for (int64_t t = std::min(j + 1, judged); left > 0.0 && t >= 0; --t) {
            const double stays = chance[t] * (left - static_cast<double>(judged - t)) / left;
            const double comes =
                t > 0 ? chance[t - 1] * static_cast<double>(judged - t + 1) / left : 0.0;
            chance[t] = std::max(stays, 0.0) + comes;
        }
    }
    return sum * static_cast<double>(block.relevant) / static_cast<double>(tied);
}

inline double infap(const Request& m, const Ranking& r) {
    const int64_t R = count_relevant(m, r);
    if (R == 0) return m.empty;
    double sum = 0.0;
    Pool above;
    for_blocks(r, [&](size_t a, size_t b) {
        Pool block;
        for (size_t i = a; i < b; ++i) block.add(m, r.entries[i].label);
        if (block.relevant > 0)
            sum += inferred_block(above, block, r.entries[a].before, r.entries[a].tied);
        above.relevant += block.relevant;
        above.other += block.other;
        above.unjudged += block.unjudged;
        return true;
    });
    return sum / static_cast<double>(R);
}

}  // namespace rankwise::metrics
