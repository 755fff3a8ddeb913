// Lambda gradients of long lists from a draw of pairs: time proportional to the documents.
//
// Every document draws `pairs_per_doc` partners with chances q that fall with the place: half
// uniform, half proportional to 1 / rank, since metrics care for the top. The pair of documents i
// and j is met pairs_per_doc (q_i + q_j) times on average, whoever draws, and counts with the
// inverse of that: the sum is the sum over all pairs, on average. Draws are stratified.
//
// Documents with equal score, gain and weight are one class: they share their draws and the result,
// so that the row order decides nothing. Pairs inside a tied block are summed exactly, by their
// closed form. The random numbers come from the seed and the gains in ranked order: the same scores
// give the same draw, the next ranking another, and neither a constant added to the scores nor
// the number of threads matters.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lambdas_pairs.hpp"

namespace rankwise {

// The finaliser of splitmix64: a good hash of 64 bits.
inline uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// Uniform on [0, 1).
inline double unit(uint64_t hash) { return static_cast<double>(hash >> 11) * 0x1p-53; }

// Lists in which a document meets no more partners than it would draw keep all their pairs.
inline bool draws_pairs(const LambdaQuery& in, const ScoredList& list) {
    return in.options.pairs_per_doc > 0 && list.n > 2 * in.options.pairs_per_doc + 1;
}

// Documents of one class, [begin, end) of the list, all of one block.
struct DrawnClass {
    int64_t begin, end;
    size_t block;
    double chance;  // of one draw to meet it
    double count() const { return static_cast<double>(end - begin); }
};

class PairDraw {
  public:
    void prepare(const LambdaQuery& in, const ScoredList& list) {
        const int64_t n = list.n;
        above_.resize(static_cast<size_t>(n) + 1);
        double harmonic = 0;
        for (int64_t i = 0; i < n; ++i) harmonic += 1.0 / static_cast<double>(i + 1);
        above_[0] = 0;
        for (int64_t i = 0; i < n; ++i)
            above_[i + 1] = above_[i] + 0.5 / static_cast<double>(n) +
                            0.5 / (static_cast<double>(i + 1) * harmonic);
        hash_ = mixed(in.options.seed);
        for (int64_t i = 0; i < n; ++i) {
            uint64_t bits;
            std::memcpy(&bits, &list.gain[i], sizeof bits);
            hash_ = mixed(hash_ ^ bits);
        }
        find_classes(list);
        guide_.resize(static_cast<size_t>(n) + 1);
        for (int64_t t = 0, i = 0; t <= n; ++t) {
            while (i + 1 < n && above_[i + 1] <= static_cast<double>(t) / static_cast<double>(n))
                ++i;
            guide_[t] = static_cast<int32_t>(i);
        }
    }

    const std::vector<DrawnClass>& classes() const { return classes_; }

    // Calls body(b) for the class of each partner that class a draws.
    template <class Body>
    void for_partners(size_t a, int64_t pairs_per_doc, Body&& body) const {
        const int64_t n = static_cast<int64_t>(guide_.size()) - 1;
        const int64_t draws = pairs_per_doc * (classes_[a].end - classes_[a].begin);
        uint64_t state = mixed(hash_ ^ mixed(a));
        for (int64_t k = 0; k < draws; ++k) {
            state = mixed(state);
            const double u =
                (static_cast<double>(k) + unit(state)) / static_cast<double>(draws) * above_[n];
            int64_t i =
                guide_[std::min<int64_t>(n, static_cast<int64_t>(u * static_cast<double>(n)))];
            while (i + 1 < n && above_[i + 1] <= u) ++i;
            while (i > 0 && above_[i] > u) --i;
            body(class_of_[i]);
        }
    }

  private:
    void find_classes(const ScoredList& list) {
        classes_.clear();
        class_of_.resize(static_cast<size_t>(list.n));
        for (size_t b = 0; b < list.blocks.size(); ++b)
            for (int64_t i = list.blocks[b].begin, end; i < list.blocks[b].end; i = end) {
                for (end = i + 1; end < list.blocks[b].end && list.gain[end] == list.gain[i] &&
                                  list.weight[end] == list.weight[i];)
                    ++end;
                for (int64_t j = i; j < end; ++j)
                    class_of_[j] = static_cast<int32_t>(classes_.size());
                classes_.push_back({i, end, b, above_[end] - above_[i]});
            }
    }

    std::vector<double> above_;  // chances summed over the documents above
    std::vector<int32_t> guide_, class_of_;
    std::vector<DrawnClass> classes_;
    uint64_t hash_ = 0;
};

struct DrawnPair {
    double force, mass, total;  // on the document above; of both; without sign
};

// The pair of a document i and one below it.
inline DrawnPair drawn_pair(const LambdaQuery& in, const ScoredList& list, const TiedBlock& a,
                            int64_t i, const TiedBlock& b, int64_t j, bool gap) {
    double i_wins, j_wins;
    if (in.options.weights == PairWeights::own) {
        i_wins = list.gain[i] * list.upper[i] * list.weight[i];
        j_wins = list.gain[j] * list.share[i] * list.lower[j] * list.weight[j];
    } else {
        double change = list.upper[i] - list.share[i] * list.lower[j];
        if (in.options.weights == PairWeights::distance) change += distance_mean(in, a, b);
        const double difference = list.gain[i] - list.gain[j];
        i_wins = std::max(difference, 0.0) * change * list.weight[i];
        j_wins = std::max(-difference, 0.0) * change * list.weight[j];
    }
    const double distance = list.score[i] - list.score[j];
    if (gap) {
        const double near = 1 / (kSmallestGap + distance);
        i_wins *= near, j_wins *= near;
    }
    const double p_j = 1 / (1 + std::exp(in.options.sigma * distance)), p_i = 1 - p_j;
    const double up = i_wins * p_j, down = j_wins * p_i;
    return {up - down, (i_wins + j_wins) * p_i * p_j, up + down};
}

// Draws for add_all_pairs: forces and masses are estimates without bias.
inline double add_drawn_pairs(const LambdaQuery& in, ScoredList& list) {
    thread_local PairDraw draw;
    draw.prepare(in, list);
    const bool gap = scales_by_gap(in.options, list);
    const auto per_doc = static_cast<double>(in.options.pairs_per_doc);
    const auto& classes = draw.classes();
    double total = 0;
    for (size_t a = 0; a < classes.size(); ++a) {
        draw.for_partners(a, in.options.pairs_per_doc, [&](size_t b) {
            const DrawnClass &upper = classes[std::min(a, b)], &lower = classes[std::max(a, b)];
            if (upper.block == lower.block || upper.begin >= list.n_upper) return;
            const DrawnPair pair = drawn_pair(in, list, list.blocks[upper.block], upper.begin,
                                              list.blocks[lower.block], lower.begin, gap);
            // Of all draws, those that meet this pair of classes.
            const double met =
                per_doc * (upper.count() * lower.chance + lower.count() * upper.chance);
            list.force[upper.begin] += pair.force * lower.count() / met;
            list.force[lower.begin] -= pair.force * upper.count() / met;
            list.mass[upper.begin] += pair.mass * lower.count() / met;
            list.mass[lower.begin] += pair.mass * upper.count() / met;
            total += pair.total * upper.count() * lower.count() / met;
        });
    }
    for (const DrawnClass& c : classes)  // one document of each class stood for all
        for (int64_t i = c.begin + 1; i < c.end; ++i)
            list.force[i] = list.force[c.begin], list.mass[i] = list.mass[c.begin];
    double tied = 0;
    for (const TiedBlock& block : list.blocks) {
        if (block.begin >= list.n_upper) break;
        tied += add_tied_pairs(in, list, block, gap ? block.within / kSmallestGap : block.within);
    }
    return total + tied / 2;
}

}  // namespace rankwise
