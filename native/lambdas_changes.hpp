// What a metric changes when two documents of a ranking swap places, as columns of one form:
//     change(i, j) = |gain_i - gain_j| (upper_i - share_i lower_j)    i in a higher block than j,
//     change(i, j) = |gain_i - gain_j| within                         i, j in one tied block.
// Four kinds of metric have it, and so has a constant.
//
//   discount  sum of gain_i D(p_i) (nDCG, DCG, precision, RBP, ...): D(p) - D(q).
//   ap        sum over relevant places of c(p) v(p), c the number of relevant documents down to p:
//             (c(p-1) + 1) v(p) + sum of v over the relevant places between - c(q) v(q).
//   first     v at the first relevant place (RR, success): only that place and those above matter.
//   cascade   sum of v(p) R_p times the product of 1 - R above p (ERR):
//             P(p) v(p) - (sum of the terms between + P(q) v(q)) / (1 - R_i).
//
// Ties. The order of a tied block is uniform over all orders, and every column is an expectation
// over them. The changes above never change sign when the order of other documents does, so the
// expected absolute change is the expected change, which splits into a part of the upper block and
// a part of the lower: the blocks' orders are independent. What stands between two documents is
// counted from the blocks' expected totals. Inside one block the places of the two documents and
// the order of the rest are averaged together.
//
// Reach. Only pairs whose upper place is among the first `reach` count: the truncation, or the
// places with a discount. The expectation then runs over the orders in which the pair counts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "lambdas_list.hpp"

namespace rankwise {

enum class SwapForm { discount, ap, first, cascade, constant };

// --- discount ----------------------------------------------------------------------------------

inline void discount_changes(const double* D, int64_t reach, ScoredList& list) {
    for (TiedBlock& block : list.blocks) {
        const int64_t m = block.size(), T = block.reached(reach);
        const double size = static_cast<double>(m);
        double mean = D[block.first], top = T > 0 ? mean : 0.0, share = T > 0 ? 1.0 : 0.0;
        if (m > 1) {
            double sum = 0, pairs = 0;
            top = 0;
            for (int64_t s = m - 1; s >= 0; --s) {
                const double d = D[block.first + s];
                if (s < T) pairs += static_cast<double>(m - 1 - s) * d - sum, top += d;
                sum += d;
            }
            mean = sum / size, top /= size, share = static_cast<double>(T) / size;
            block.within = std::max(pairs, 0.0) / (size * (size - 1) / 2);
        }
        for (int64_t i = block.begin; i < block.end; ++i)
            list.upper[i] = top, list.share[i] = share, list.lower[i] = mean;
        if (T > 0) list.n_upper = block.end;
    }
}

// Within a block, when each document wins with its own gain times the discount of its place: the
// mean of D(p) over two different places of which one is within reach.
inline double own_discount_within(const double* D, const TiedBlock& block, int64_t reach) {
    const int64_t m = block.size(), T = block.reached(reach);
    double sum = 0;
    for (int64_t s = 0; s < m; ++s)
        sum += static_cast<double>(s < T ? m - 1 : T) * D[block.first + s];
    return m > 1 ? sum / (static_cast<double>(m) * static_cast<double>(m - 1)) : 0.0;
}

// --- a constant --------------------------------------------------------------------------------

// The change is c for every pair with a document within reach. The lower column is c as well where
// each document wins with its own gain (`own`), else 0.
inline void constant_changes(double c, bool own, int64_t reach, ScoredList& list) {
    for (TiedBlock& block : list.blocks) {
        const auto m = static_cast<double>(block.size());
        const int64_t T = block.reached(reach);
        const double share = static_cast<double>(T) / m, beyond = m - static_cast<double>(T);
        for (int64_t i = block.begin; i < block.end; ++i) {
            list.upper[i] = c * share;
            list.share[i] = own ? share : 0.0;
            list.lower[i] = own ? c : 0.0;
        }
        if (block.size() > 1) block.within = c * (1 - beyond * (beyond - 1) / (m * (m - 1)));
        if (T > 0) list.n_upper = block.end;
    }
}

// --- average precision -------------------------------------------------------------------------

// Relevant judged documents of a block; gains are 0 and 1.
inline int64_t relevant_in(const ScoredList& list, const TiedBlock& block) {
    int64_t count = 0;
    for (int64_t i = block.begin; i < block.end; ++i) count += list.gain[i] > 0;
    return count;
}

// Upper and lower column of a document of one kind (x = 1: relevant) in a tied block, given the
// relevant documents `above` the block and the expected sum `S` of v over their places. In this
// block the document's own place is uniform and any other place is relevant with chance `rho`.
struct ApPart {
    double upper, lower;
};

inline ApPart ap_part(const double* v, const TiedBlock& block, int64_t T, double above, double S,
                      double rho, double x) {
    const int64_t m = block.size();
    double upper = 0, lower = 0, passed = 0, total = 0;
    for (int64_t s = 0; s < m; ++s) total += v[block.first + s];
    for (int64_t s = 0; s < m; ++s) {
        const double at = v[block.first + s], beside = rho * static_cast<double>(s);
        lower += (above + beside + x) * at - (S + rho * passed);
        passed += at;
        if (s < T) upper += (above + beside + 1) * at + rho * (total - passed);
    }
    return {upper / static_cast<double>(m), lower / static_cast<double>(m)};
}

inline double ap_within(const double* v, const TiedBlock& block, int64_t T, double above,
                        double r) {
    const int64_t m = block.size();
    const double size = static_cast<double>(m), rho = m > 2 ? (r - 1) / (size - 2) : 0.0;
    double sum = 0, passed = 0;
    for (int64_t s = 0; s < m; ++s) {
        const double at = v[block.first + s], beside = static_cast<double>(s);
        // As the lower of the two, then as the upper one.
        sum += static_cast<double>(std::min(s, T)) *
               (rho * passed - (above + 1 + rho * (beside - 1)) * at);
        passed += at;
        if (s < T) sum += (size - 1 - beside) * ((above + 1 + rho * beside) * at - rho * passed);
    }
    return std::max(sum, 0.0) / (size * (size - 1) / 2);
}

inline void ap_changes(const double* v, int64_t reach, ScoredList& list) {
    double above = 0, S = 0;
    for (TiedBlock& block : list.blocks) {
        const int64_t m = block.size(), T = block.reached(reach), r = relevant_in(list, block);
        const double size = static_cast<double>(m), relevant = static_cast<double>(r);
        double total = 0;
        for (int64_t p = block.first; p < block.last; ++p) total += v[p];
        const double S_end = S + total * relevant / size;
        const double share = static_cast<double>(T) / size;
        for (const int x : {0, 1}) {
            if (x == 1 && r == 0) continue;
            const double rho = m > 1 ? (relevant - x) / (size - 1) : 0.0;
            const ApPart part = ap_part(v, block, T, above, S, rho, x);
            for (int64_t i = block.begin; i < block.end; ++i) {
                if ((list.gain[i] > 0) != (x == 1)) continue;
                list.upper[i] = part.upper - share * S_end;
                list.share[i] = share;
                list.lower[i] = part.lower;
            }
        }
        if (m > 1 && r > 0 && r < m) block.within = ap_within(v, block, T, above, relevant);
        if (T > 0) list.n_upper = block.end;
        above += relevant, S = S_end;
    }
}

// --- the first relevant document ---------------------------------------------------------------

inline double mean_over(const double* v, int64_t first, int64_t n, int64_t size) {
    double sum = 0;
    for (int64_t p = first; p < first + n; ++p) sum += v[p];
    return sum / static_cast<double>(size);
}

// What the block with the first relevant document expects. F and G are the offsets of its first
// and second relevant document, r of its m are relevant, v is counted from the block's start.
struct FirstBlock {
    double v_first = 0;      // E v(F)
    double relevant_up = 0;  // of a relevant document as the upper one, G in this block:
                             //   E (v(F) - v(G)) [it is at F]
    double other_up = 0;     // of another: E (v(p) - v(F)) [p < F]
    double within = 0;
};

inline FirstBlock first_block(const double* v, int64_t m, int64_t r, int64_t T) {
    FirstBlock out;
    const double size = static_cast<double>(m), rel = static_cast<double>(r), other = size - rel;
    // F alone: chance / remaining is P(F = f).
    double none = 1, V = 0, V_T = 0;
    for (int64_t f = 0; f <= m - r; ++f) {
        const double here = none * rel / (size - static_cast<double>(f));
        out.v_first += here * v[f];
        if (other > 0) out.other_up += here * (V_T - static_cast<double>(std::min(f, T)) * v[f]);
        none -= here;
        V += v[f];
        if (f < T) V_T += v[f];
    }
    if (other > 0) out.other_up /= other;
    double pairs = 0;  // sum over the other documents below F of their change with the one at F
    if (r == 1) {
        double below = 0;
        for (int64_t f = m - 1; f >= 0; --f) {
            if (f < T) pairs += (static_cast<double>(m - 1 - f) * v[f] - below) / size;
            below += v[f];
        }
    } else {
        // P(F = f, G = g) does not depend on f. V, X, Y are sums over f < g of v(f), of
        // (g - 1 - f) v(f), and of the v between f and g; f within the reach.
        double both = rel * (rel - 1) / (size * (size - 1)), X = 0, Y = 0;
        V_T = T > 0 ? v[0] : 0.0;
        for (int64_t g = 1; g <= m - r + 1; ++g) {
            const double kept = static_cast<double>(std::min(g, T)), at = static_cast<double>(g);
            const double drop = V_T - kept * v[g];
            out.relevant_up += both * drop;
            pairs += both * (X - Y + (size - rel - at + 1) * drop);
            X += V_T;
            Y += kept * v[g];
            if (g < T) V_T += v[g];
            if (g < m - 1) both *= (size + 1 - at - rel) / (size - 1 - at);
        }
        out.relevant_up /= rel;
    }
    if (other > 0) out.within = out.other_up + pairs / (rel * other);
    return out;
}

// Lower column of the documents below a lone first relevant one: what is then the first place,
// E v(min(q, place of the second relevant document)).
inline void second_places(const double* v, size_t from, ScoredList& list) {
    double second = -1;  // E v there, once a block with relevant documents has been passed
    for (size_t b = from; b < list.blocks.size(); ++b) {
        const TiedBlock& block = list.blocks[b];
        const int64_t m = block.size(), r = relevant_in(list, block);
        const double* at = v + block.first;
        double lower = second;
        if (second < 0 && r == 0) lower = mean_over(v, block.first, m, m);
        if (second < 0 && r > 0) {
            double none = 1, passed = 0;
            second = lower = 0;
            for (int64_t g = 0; g <= m - r; ++g) {
                const double here = none * static_cast<double>(r) / static_cast<double>(m - g);
                second += here * at[g];
                lower += here * (passed + static_cast<double>(m - r - g) * at[g]);
                none -= here;
                passed += at[g];
            }
            lower /= static_cast<double>(std::max<int64_t>(m - r, 1));
        }
        for (int64_t i = block.begin; i < block.end; ++i)
            if (list.gain[i] <= 0) list.lower[i] = lower;
    }
}

inline void first_changes(const double* v, int64_t reach, ScoredList& list) {
    size_t f = 0;
    for (; f < list.blocks.size() && relevant_in(list, list.blocks[f]) == 0; ++f) {
        const TiedBlock& block = list.blocks[f];
        const int64_t T = block.reached(reach);
        const double upper = mean_over(v, block.first, T, block.size());
        const double share = static_cast<double>(T) / static_cast<double>(block.size());
        for (int64_t i = block.begin; i < block.end; ++i)
            list.upper[i] = upper, list.share[i] = share, list.lower[i] = 0;
        if (T > 0) list.n_upper = block.end;
    }
    if (f == list.blocks.size()) {
        list.n_upper = 0;
        return;
    }
    TiedBlock& block = list.blocks[f];
    const int64_t m = block.size(), T = block.reached(reach), r = relevant_in(list, block);
    const FirstBlock found = first_block(v + block.first, m, r, T);
    const bool lone = r == 1;
    const double lone_up = mean_over(v, block.first, T, m);
    const double lone_share = static_cast<double>(T) / static_cast<double>(m);
    for (int64_t i = block.begin; i < block.end; ++i) {
        const bool relevant = list.gain[i] > 0;
        list.upper[i] = !relevant ? found.other_up : lone ? lone_up : found.relevant_up;
        list.share[i] = relevant && lone ? lone_share : 0.0;
    }
    block.within = std::max(found.within, 0.0);
    if (T > 0) list.n_upper = block.end;
    for (int64_t i = 0; i < list.n; ++i) list.lower[i] = list.gain[i] > 0 ? found.v_first : 0.0;
    if (lone) second_places(v, f + 1, list);
}

// --- cascade -----------------------------------------------------------------------------------

// Mean over the subsets of s documents of the product of their 1 - R, for s = 0 .. size, built one
// document at a time; and with a document taken out again.
class MeanProducts {
  public:
    void reset(int64_t ones) {  // documents that stop nobody
        mean_.assign(static_cast<size_t>(ones) + 1, 1.0);
    }

    void add(double go) {
        const auto size = static_cast<int64_t>(mean_.size());  // after adding
        mean_.push_back(0.0);
        for (int64_t s = size; s > 0; --s) {
            const double share = static_cast<double>(s) / static_cast<double>(size);
            mean_[s] = (s < size ? (1 - share) * mean_[s] : 0.0) + share * go * mean_[s - 1];
        }
    }

    // The same without one document. Each direction of the recursion damps errors on its side of
    // s = size / (1 + go) only, so both are used.
    void without(double go, MeanProducts& out) const {
        const auto size = static_cast<int64_t>(mean_.size()) - 1;
        out.mean_.resize(static_cast<size_t>(size));
        const auto middle =
            std::min<int64_t>(size, static_cast<int64_t>(static_cast<double>(size) / (1 + go)));
        double last = 0;
        for (int64_t s = 0; s < middle; ++s) {
            const double share = static_cast<double>(s) / static_cast<double>(size);
            last = out.mean_[s] = (mean_[s] - share * go * last) / (1 - share);
        }
        last = 0;
        for (int64_t s = size; s > middle; --s) {
            const double share = static_cast<double>(s) / static_cast<double>(size);
            last = out.mean_[s - 1] = (mean_[s] - (1 - share) * last) / (share * go);
        }
    }

    double operator[](int64_t s) const { return mean_[static_cast<size_t>(s)]; }

  private:
    std::vector<double> mean_;
};

// Columns of a document in a block of m at place v, from the products M of the other documents.
struct CascadePart {
    double upper = 0, lower = 0;
};

inline CascadePart cascade_part(const double* v, int64_t m, int64_t T, const MeanProducts& M) {
    CascadePart out;
    double rest = 0;  // terms below place s that remain when the document leaves it
    for (int64_t s = 1; s < m; ++s) rest += v[s] * (M[s - 1] - M[s]);
    double passed = 0;
    for (int64_t s = 0; s < m; ++s) {
        if (s < T) out.upper += v[s] * M[s] - rest;
        out.lower += passed + v[s] * M[s];
        if (s + 1 < m) {
            rest -= v[s + 1] * (M[s] - M[s + 1]);
            passed += v[s] * (M[s] - M[s + 1]);
        }
    }
    out.upper /= static_cast<double>(m), out.lower /= static_cast<double>(m);
    return out;
}

// Change per unit of gain difference of two documents of one block, from the products of the rest.
inline double cascade_within(const double* v, int64_t m, int64_t T, const MeanProducts& M) {
    double sum = 0, H = 0;
    for (int64_t s = 0; s < m; ++s) {
        if (s > 0) {
            sum -= static_cast<double>(std::min(s, T)) * (H + v[s] * M[s - 1]);
            if (s + 1 < m) H += v[s] * (M[s - 1] - M[s]);
        }
        if (s < T && s + 1 < m) sum += static_cast<double>(m - 1 - s) * (v[s] * M[s] + H);
    }
    return std::max(sum, 0.0) / (0.5 * static_cast<double>(m) * static_cast<double>(m - 1));
}

// Products of a tied block; documents that stop nobody, unjudged ones too, are counted at once.
inline void block_products(const ScoredList& list, const TiedBlock& block, MeanProducts& all) {
    int64_t stopping = 0;
    for (int64_t i = block.begin; i < block.end; ++i) stopping += list.gain[i] > 0;
    all.reset(block.size() - stopping);
    for (int64_t i = block.begin; i < block.end; ++i)
        if (list.gain[i] > 0) all.add(1 - list.gain[i]);
}

struct CascadeScratch {
    MeanProducts all, one, two;
};

inline void cascade_changes(const double* v, int64_t reach, ScoredList& list) {
    thread_local CascadeScratch products;
    // Terms are summed from the end, where they are smallest: `after` is what follows a block. The
    // chance to reach each block is needed first.
    auto& reached = list.scratch;
    reached.assign(list.blocks.size() + 1, 1.0);
    for (size_t b = 0; b < list.blocks.size(); ++b) {
        double go = reached[b];
        for (int64_t i = list.blocks[b].begin; i < list.blocks[b].end; ++i) go *= 1 - list.gain[i];
        reached[b + 1] = go;
    }
    double after = 0;
    for (size_t b = list.blocks.size(); b-- > 0;) {
        TiedBlock& block = list.blocks[b];
        const int64_t m = block.size(), T = block.reached(reach);
        const double* at = v + block.first;
        const double share = static_cast<double>(T) / static_cast<double>(m);
        if (m > 1) block_products(list, block, products.all);
        double inside = 0;
        if (m == 1)
            for (int64_t i = block.begin; i < block.end; ++i) inside = at[0] * list.gain[i];
        else
            for (int64_t s = 0; s < m; ++s)
                inside += at[s] * (products.all[s] - products.all[s + 1]);
        const double total = after + reached[b] * inside;
        CascadePart part{share * at[0], at[0]};
        for (int64_t i = block.begin; i < block.end; ++i) {
            const double go = 1 - list.gain[i];
            if (m > 1 && (i == block.begin || list.gain[i] != list.gain[i - 1])) {
                products.all.without(go, products.one);
                part = cascade_part(at, m, T, products.one);
            }
            list.share[i] = share / go;
            list.upper[i] = reached[b] * part.upper - list.share[i] * after;
            list.lower[i] = reached[b] * part.lower - total;
        }
        if (m > 1) block.within = reached[b];
        after = total;
        if (T > 0) list.n_upper = std::max(list.n_upper, block.end);
    }
}

}  // namespace rankwise
