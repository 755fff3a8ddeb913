// The value of each metric on one query's ranking. Every function handles blocks of tied documents
// in closed form: the expected value over the orders of the block.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "metrics_ranking.hpp"

namespace rankwise {

// 2^label - 1.
inline double power_gain(double label) {
    if (label < 31.0) {
        const auto grade = static_cast<int32_t>(label);
        if (static_cast<double>(grade) == label) return static_cast<double>((1u << grade) - 1u);
    }
    return std::exp2(label) - 1.0;
}

enum class Gain { exp2, identity, table, excess };

// One metric with its conventions. `k` is -1 for the whole list; `empty` is the value of a query
// without relevant documents.
struct Request {
    using Function = double (*)(const Request&, const Ranking&);
    Function function = nullptr;
    int64_t k = -1;
    double rel = 1.0;
    double parameter = 0.0;  // persistence, half-life, recall level, multiple of R, top grade
    double neutral = 0.0;
    Gain gain = Gain::exp2;
    bool cut_short = false;   // a list shorter than k divides by its own length
    bool zero_short = false;  // a list shorter than k has value 0
    bool norm_min = false;    // average precision divides by min(R, k)
    bool together = false;    // tied documents enter average precision at once, as one rank
    bool tail_always = true;  // RBP's residual counts the unseen tail of a fully judged list
    bool round_up = false;    // a share of R documents is rounded up from .1
    double empty = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> gains;      // by label, for Gain::table
    std::vector<double> discounts;  // by rank from 0; 0 beyond the end
    std::vector<double> weights;    // of utility's four counts, or recall levels

    double gain_of(double label) const {
        if (!(label > 0.0)) return 0.0;
        switch (gain) {
            case Gain::exp2:
                return power_gain(label);
            case Gain::identity:
                return label;
            case Gain::excess:
                return std::max(label - neutral, 0.0);
            case Gain::table:
                break;
        }
        const auto i = static_cast<size_t>(label);
        return i < gains.size() ? gains[i] : 0.0;  // labels outside the table are refused earlier
    }

    bool relevant(double label) const { return label >= rel; }

    int64_t depth(const Ranking& r) const { return k < 0 ? r.n_ranked : k; }

    // Mean discount of the `tied` ranks after `before`.
    double discount(int64_t before, int64_t tied) const {
        const auto n = static_cast<int64_t>(discounts.size());
        if (tied == 1) return before < n ? discounts[before] : 0.0;
        double sum = 0.0;
        for (int64_t j = before; j < std::min(before + tied, n); ++j) sum += discounts[j];
        return sum / static_cast<double>(tied);
    }
};

namespace metrics {

inline int64_t count_relevant(const Request& m, const Ranking& r) {
    const auto end = std::partition_point(r.labels.begin(), r.labels.end(),
                                          [&](double y) { return m.relevant(y); });
    return end - r.labels.begin();
}

// NaN is not judged, and neither is a label below 0 (infAP's pooled documents).
inline bool is_judged(double label) { return label >= 0.0; }

// Calls body(begin, end) for each block of tied entries.
template <class Body>
void for_blocks(const Ranking& r, Body&& body) {
    const size_t n = r.entries.size();
    for (size_t a = 0, b; a < n; a = b) {
        for (b = a + 1; b < n && r.entries[b].before == r.entries[a].before;) ++b;
        if (!body(a, b)) return;
    }
}

// Expected number of entries among the first `depth` ranks that satisfy `wanted`.
template <class Wanted>
double expected_count(const Ranking& r, int64_t depth, Wanted&& wanted) {
    double count = 0.0;
    for (const Entry& e : r.entries) {
        if (e.before >= depth) break;
        if (wanted(e.label))
            count += static_cast<double>(std::min(e.tied, depth - e.before)) /
                     static_cast<double>(e.tied);
    }
    return count;
}

inline double hits(const Request& m, const Ranking& r, int64_t depth) {
    return expected_count(r, depth, [&](double y) { return m.relevant(y); });
}

// --- gain x discount -----------------------------------------------------------------------

inline double dcg_sum(const Request& m, const Ranking& r) {
    const auto n = static_cast<int64_t>(m.discounts.size());
    double sum = 0.0;
    for_blocks(r, [&](size_t a, size_t b) {
        const Entry& e = r.entries[a];
        if (e.before >= n) return false;
        const auto size = static_cast<int64_t>(b - a);
        if (size == e.tied && e.label == r.entries[b - 1].label) {
            // Documents that are all alike sum as in the ideal order, so that it has exactly 1.
            const double gain = m.gain_of(e.label);
            for (int64_t j = e.before; j < std::min(e.before + size, n); ++j)
                sum += gain * m.discounts[j];
        } else {
            const double discount = m.discount(e.before, e.tied);
            for (size_t i = a; i < b; ++i) sum += m.gain_of(r.entries[i].label) * discount;
        }
        return true;
    });
    return sum;
}

inline double ideal_sum(const Request& m, const Ranking& r) {
    const size_t n = std::min(m.discounts.size(), r.labels.size());
    double sum = 0.0;
    for (size_t i = 0; i < n; ++i) sum += m.gain_of(r.labels[i]) * m.discounts[i];
    return sum;
}

inline bool without_gain(const Request& m, const Ranking& r) {
    return r.labels.empty() || !(m.gain_of(r.labels[0]) > 0.0);
}

inline double dcg(const Request& m, const Ranking& r) {
    return without_gain(m, r) ? m.empty : dcg_sum(m, r);
}

inline double ndcg(const Request& m, const Ranking& r) {
    if (without_gain(m, r)) return m.empty;
    if (m.zero_short && r.n_ranked < m.k) return 0.0;
    return std::min(dcg_sum(m, r) / ideal_sum(m, r), 1.0);
}

// Mean of nDCG@1 to nDCG@n.
inline double mean_ndcg(const Request& m, const Ranking& r) {
    if (without_gain(m, r)) return m.empty;
    if (r.n_ranked == 0) return 0.0;
    const auto n_entries = static_cast<int64_t>(r.entries.size());
    const auto n_labels = static_cast<int64_t>(r.labels.size());
    double dcg = 0.0, ideal = 0.0, sum = 0.0, gain = 0.0;
    int64_t next = 0, end = 0;
    for (int64_t i = 0; i < r.n_ranked; ++i) {
        if (i >= end) gain = 0.0;
        if (next < n_entries && r.entries[next].before == i) {
            const int64_t tied = r.entries[next].tied;
            for (gain = 0.0; next < n_entries && r.entries[next].before == i; ++next)
                gain += m.gain_of(r.entries[next].label);
            gain /= static_cast<double>(tied);
            end = i + tied;
        }
        dcg += gain * m.discounts[i];
        if (i < n_labels) ideal += m.gain_of(r.labels[i]) * m.discounts[i];
        sum += std::min(dcg / ideal, 1.0);
    }
    return sum / static_cast<double>(r.n_ranked);
}

inline double precision_of(double hits, int64_t size) {
    return size > 0 ? hits / static_cast<double>(size) : 0.0;
}

inline int64_t precision_size(const Request& m, const Ranking& r) {
    const int64_t depth = m.depth(r);
    return m.cut_short ? std::min(depth, r.n_ranked) : depth;
}

inline double precision(const Request& m, const Ranking& r) {
    if (count_relevant(m, r) == 0) return m.empty;
    if (m.zero_short && r.n_ranked < m.k) return 0.0;
    return precision_of(hits(m, r, m.depth(r)), precision_size(m, r));
}

inline double recall(const Request& m, const Ranking& r) {
    const int64_t R = count_relevant(m, r);
    return R == 0 ? m.empty : hits(m, r, m.depth(r)) / static_cast<double>(R);
}

// 2 P R / (P + R) = 2 hits / (depth + R).
inline double f1(const Request& m, const Ranking& r) {
    const int64_t R = count_relevant(m, r);
    if (R == 0) return m.empty;
    return 2.0 * hits(m, r, m.depth(r)) / static_cast<double>(precision_size(m, r) + R);
}

inline double relative_precision(const Request& m, const Ranking& r) {
    const int64_t R = count_relevant(m, r);
    if (R == 0) return m.empty;
    return precision_of(hits(m, r, m.depth(r)), std::min(m.depth(r), R));
}

inline double set_ap(const Request& m, const Ranking& r) {
    const int64_t R = count_relevant(m, r);
    if (R == 0) return m.empty;
    const double h = hits(m, r, m.depth(r));
    return precision_of(h, m.depth(r)) * h / static_cast<double>(R);
}

inline double r_precision(const Request& m, const Ranking& r) {
    const int64_t R = count_relevant(m, r);
    if (R == 0) return m.empty;
    const auto depth =
        std::max<int64_t>(1, static_cast<int64_t>(m.parameter * static_cast<double>(R) + 0.9));
    return hits(m, r, depth) / static_cast<double>(depth);
}

inline double rbp(const Request& m, const Ranking& r) {
    if (count_relevant(m, r) == 0) return m.empty;
    double sum = 0.0;
    for (const Entry& e : r.entries)
        if (m.relevant(e.label)) sum += m.discount(e.before, e.tied);
    return sum;
}

// Labels over the query's largest, as trec_eval 10 has it, in place of 0 and 1.
inline double graded_rbp(const Request& m, const Ranking& r) {
    if (r.labels.empty()) return m.empty;
    double sum = 0.0;
    for (const Entry& e : r.entries)
        if (e.label > 0.0) sum += e.label * m.discount(e.before, e.tied);
    return sum / std::max(r.labels[0], 1.0);
}

// What RBP could still gain: unjudged ranks, and the ranks after the last.
inline double rbp_residual(const Request& m, const Ranking& r) {
    double sum = 0.0;
    bool all_judged = true;
    for (const Entry& e : r.entries)
        if (!is_judged(e.label)) sum += m.discount(e.before, e.tied), all_judged = false;
    if (all_judged && !m.tail_always) return 0.0;
    return sum + std::pow(m.parameter, static_cast<double>(r.n_ranked));
}

inline double judged(const Request& m, const Ranking& r) {
    const double count = expected_count(r, m.depth(r), is_judged);
    return precision_of(count, precision_size(m, r));
}

// Unjudged documents among the first k places, over k; missing places are not unjudged.
inline double unjudged(const Request& m, const Ranking& r) {
    const double count = expected_count(r, m.depth(r), [](double y) { return !is_judged(y); });
    return precision_of(count, m.depth(r));
}

inline double wta(const Request& m, const Ranking& r) {
    if (r.labels.empty()) return m.empty;
    const double top = r.labels[0];
    return expected_count(r, 1, [&](double y) { return y == top; });
}

// --- counts --------------------------------------------------------------------------------

inline double retrieved(const Request&, const Ranking& r) {
    return static_cast<double>(r.n_ranked);
}

inline double relevant(const Request& m, const Ranking& r) {
    return static_cast<double>(count_relevant(m, r));
}

inline double relevant_retrieved(const Request& m, const Ranking& r) {
    return std::round(hits(m, r, r.n_ranked));
}

inline double nonrelevant_retrieved(const Request& m, const Ranking& r) {
    return std::round(
        expected_count(r, r.n_ranked, [&](double y) { return is_judged(y) && !m.relevant(y); }));
}

// --- the first relevant document, and what stands above each -------------------------------

inline int64_t block_relevant(const Request& m, const Ranking& r, size_t a, size_t b) {
    int64_t count = 0;
    for (size_t i = a; i < b; ++i) count += m.relevant(r.entries[i].label);
    return count;
}

// P(none of the first c places of a block of b documents holds one of its r relevant ones).
inline double none_among(int64_t b, int64_t r, int64_t c) {
    if (c > b - r) return 0.0;
    double p = 1.0;
    for (int64_t i = 0; i < c; ++i)
        p *= static_cast<double>(b - r - i) / static_cast<double>(b - i);
    return p;
}

inline double success(const Request& m, const Ranking& r) {
    if (count_relevant(m, r) == 0) return m.empty;
    const int64_t depth = m.depth(r);
    double value = 0.0;
    for_blocks(r, [&](size_t a, size_t b) {
        const Entry& e = r.entries[a];
        const int64_t relevant = block_relevant(m, r, a, b);
        if (e.before >= depth) return false;
        if (relevant == 0) return true;
        value = 1.0 - none_among(e.tied, relevant, std::min(e.tied, depth - e.before));
        return false;
    });
    return value;
}

inline double rr(const Request& m, const Ranking& r) {
    if (count_relevant(m, r) == 0) return m.empty;
    const int64_t depth = m.depth(r);
    double value = 0.0;
    for_blocks(r, [&](size_t a, size_t b) {
        const Entry& e = r.entries[a];
        const int64_t relevant = block_relevant(m, r, a, b);
        if (relevant == 0) return true;
        const int64_t last = std::min(e.tied - relevant + 1, depth - e.before);
        double none = 1.0;  // P(the places before this one hold no relevant document)
        for (int64_t j = 0; j < last; ++j) {
            const double here = static_cast<double>(relevant) / static_cast<double>(e.tied - j);
            value += none * here / static_cast<double>(e.before + j + 1);
            none *= 1.0 - here;
        }
        return false;
    });
    return value;
}

// A relevant document at place j of its block has, on average, a share (j - 1)/(b - 1) of the
// block's other relevant documents above it.
inline double ap(const Request& m, const Ranking& r) {
    const int64_t R = count_relevant(m, r);
    if (R == 0) return m.empty;
    const int64_t depth = m.depth(r);
    double sum = 0.0, above = 0.0;
    for_blocks(r, [&](size_t a, size_t b) {
        const Entry& e = r.entries[a];
        if (e.before >= depth) return false;
        const auto relevant = static_cast<double>(block_relevant(m, r, a, b));
        if (relevant == 0.0) return true;
        if (e.tied == 1) {
            sum += (above + 1.0) / static_cast<double>(e.before + 1);
        } else if (m.together) {
            const int64_t rank = e.before + e.tied;
            if (rank <= depth) sum += relevant * (above + relevant) / static_cast<double>(rank);
        } else {
            const auto size = static_cast<double>(e.tied);
            const double others = (relevant - 1.0) / (size - 1.0);
            const int64_t last = std::min(e.tied, depth - e.before);
            double inside = 0.0;
            for (int64_t j = 0; j < last; ++j)
                inside += (above + 1.0 + static_cast<double>(j) * others) /
                          static_cast<double>(e.before + j + 1);
            sum += inside * relevant / size;
        }
        above += relevant;
        return true;
    });
    return sum / static_cast<double>(m.norm_min && m.k > 0 ? std::min(R, m.k) : R);
}

// sum over ranks of P(stop here) / rank. In a block, P(the first j places do not stop) is the mean
// of the products of j of its continuation probabilities, built one document at a time.
inline double err(const Request& m, const Ranking& r) {
    if (r.labels.empty()) return m.empty;
    const int64_t depth = m.depth(r);
    const double scale = std::exp2(-m.parameter);
    const auto stop = [&](double y) { return y > 0.0 ? (std::exp2(y) - 1.0) * scale : 0.0; };
    double value = 0.0, reach = 1.0;
    std::vector<double> none;
    for_blocks(r, [&](size_t a, size_t b) {
        const Entry& e = r.entries[a];
        if (e.before >= depth) return false;
        if (e.tied == 1) {
            const double p = stop(e.label);
            value += reach * p / static_cast<double>(e.before + 1);
            reach *= 1.0 - p;
            return true;
        }
        // none[j]: mean over the subsets of size j of the documents taken so far, which are first
        // those that stop nobody.
        const auto last = static_cast<size_t>(std::min(e.tied, depth - e.before));
        const auto end = std::find_if(r.entries.begin() + static_cast<int64_t>(a),
                                      r.entries.begin() + static_cast<int64_t>(b),
                                      [](const Entry& x) { return !(x.label > 0.0); });
        const size_t stopping = static_cast<size_t>(end - r.entries.begin());
        auto size = static_cast<double>(e.tied) - static_cast<double>(stopping - a);
        none.assign(last + 1, 0.0);
        for (size_t j = 0; j <= last && static_cast<double>(j) <= size; ++j) none[j] = 1.0;
        double all = 1.0;
        for (size_t i = a; i < stopping; ++i) {
            const double go = 1.0 - stop(r.entries[i].label);
            size += 1.0;
            all *= go;
            for (size_t j = last; j > 0; --j) {
                const auto dj = static_cast<double>(j);
                if (dj <= size) none[j] = ((size - dj) * none[j] + dj * go * none[j - 1]) / size;
            }
        }
        for (size_t j = 1; j <= last; ++j)
            value += reach * (none[j - 1] - none[j]) / static_cast<double>(e.before + j);
        reach *= all;
        return true;
    });
    return value;
}

// Judged nonrelevant documents above each relevant one; needs every retrieved document.
inline double bpref(const Request& m, const Ranking& r) {
    const int64_t R = count_relevant(m, r);
    if (R == 0) return m.empty;
    const int64_t bound = std::min(R, r.n_judged - R);
    int64_t above = 0;
    double sum = 0.0;
    for_blocks(r, [&](size_t a, size_t b) {
        const int64_t relevant = block_relevant(m, r, a, b);
        int64_t beside = 0;
        for (size_t i = a; i < b; ++i)
            beside += is_judged(r.entries[i].label) && !m.relevant(r.entries[i].label);
        if (relevant > 0) {
            // The number of the block's nonrelevant documents above is uniform on 0 to `beside`.
            double lost = 0.0;
            if (bound > 0)
                for (int64_t c = 0; c <= beside; ++c)
                    lost += static_cast<double>(std::min(above + c, bound));
            const double mean =
                bound > 0 ? lost / static_cast<double>(bound) / static_cast<double>(beside + 1)
                          : 0.0;
            sum += static_cast<double>(relevant) * (1.0 - mean);
        }
        above += beside;
        return true;
    });
    return sum / static_cast<double>(R);
}

}  // namespace metrics
}  // namespace rankwise
