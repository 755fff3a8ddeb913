// One query's documents in the order of their scores, with the blocks of tied ones: what every
// lambda gradient starts from.
//
// Documents come in a canonical order that does not depend on how rows are stored (see
// lambdas.hpp), and equal scores keep it. So the sorted list, and with it the order of every sum,
// is the same for a shuffled file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simd.hpp"

namespace rankwise {

struct PlacedScore {
    double score;
    int64_t doc;  // in the query's canonical order
};

inline bool comes_before(const PlacedScore& a, const PlacedScore& b) {
    return a.score > b.score || (a.score == b.score && a.doc < b.doc);
}

// Places [first, last) of the ranking hold equal scores; [begin, end) are its judged documents.
struct TiedBlock {
    int64_t first, last;
    int64_t begin, end;
    double within = 0;  // change when two documents of the block swap, per unit of gain difference

    int64_t size() const { return last - first; }
    // How many of its places are among the first `reach`.
    int64_t reached(int64_t reach) const {
        return std::clamp<int64_t>(reach - first, 0, last - first);
    }
};

// The judged documents of one query, best score first. Columns are padded to whole vectors. The
// change when document i and a document j of a lower block swap places is
//     |gain_i - gain_j| (upper_i - share_i lower_j).
struct ScoredList {
    int64_t size = 0;     // documents, unjudged ones included
    int64_t n = 0;        // judged ones
    int64_t n_upper = 0;  // those that can be the upper document of a pair with a change
    std::vector<PlacedScore> ranking, spare;
    std::vector<TiedBlock> blocks;
    std::vector<double> level, gain, upper, share, lower, extra, score, weight, force, mass;
    std::vector<int64_t> doc;
    std::vector<double> scratch;

    void resize(int64_t documents) {
        const size_t padded = static_cast<size_t>(documents) + 8;
        for (auto* c :
             {&level, &gain, &upper, &share, &lower, &extra, &score, &weight, &force, &mass})
            if (c->size() < padded) c->resize(padded);
        if (doc.size() < padded) doc.resize(padded);
    }
};

// Place of each document among n: how many beat it, or equal it and come before. Quadratic, but
// without a branch to predict: for short runs faster than sorting.
RANKWISE_CLONES inline void places_by_counting(const double* score, int64_t n, int64_t* place) {
    for (int64_t i = 0; i < n; ++i) {
        int64_t above = 0;
        for (int64_t j = 0; j < i; ++j) above += score[j] >= score[i];
        for (int64_t j = i + 1; j < n; ++j) above += score[j] > score[i];
        place[i] = above;
    }
}

// Fills list.ranking by descending score from scores in canonical order: runs sorted by counting,
// then merged.
inline void sort_from_scratch(const double* score, int64_t n, ScoredList& list) {
    constexpr int64_t kRun = 32;
    auto &ranking = list.ranking, &spare = list.spare;
    spare.resize(static_cast<size_t>(n));
    int64_t place[kRun];
    for (int64_t start = 0; start < n; start += kRun) {
        const int64_t size = std::min(kRun, n - start);
        places_by_counting(score + start, size, place);
        for (int64_t i = 0; i < size; ++i)
            ranking[start + place[i]] = {score[start + i], start + i};
    }
    const auto before = [](const PlacedScore& a, const PlacedScore& b) {
        return a.score > b.score;
    };
    for (int64_t run = kRun; run < n; run *= 2) {
        for (int64_t start = 0; start < n; start += 2 * run) {
            const auto from = ranking.begin();
            const int64_t half = std::min(start + run, n), end = std::min(start + 2 * run, n);
            std::merge(from + start, from + half, from + half, from + end, spare.begin() + start,
                       before);
        }
        ranking.swap(spare);
    }
}

// Moves a document may make per document of the list before sorting anew is cheaper.
constexpr int64_t kMovesPerDoc = 6;

// Insertion sort of a list that is nearly in order. False, with the list spoilt, when it is not.
inline bool sort_from_last(std::vector<PlacedScore>& ranking, int64_t n) {
    int64_t left = kMovesPerDoc * n;
    for (int64_t i = 1; i < n; ++i) {
        const PlacedScore moved = ranking[i];
        int64_t j = i;
        for (; j > 0 && comes_before(moved, ranking[j - 1]); --j) ranking[j] = ranking[j - 1];
        ranking[j] = moved;
        if ((left -= i - j) < 0) return false;
    }
    return true;
}

// Sorts a query. `last` holds the order found the last time and takes the new one; the result
// depends on the scores only.
inline void sort_query(const double* score, int64_t n, int32_t* last, ScoredList& list) {
    list.ranking.resize(static_cast<size_t>(n));
    for (int64_t p = 0; p < n; ++p) list.ranking[p] = {score[last[p]], last[p]};
    if (!sort_from_last(list.ranking, n)) sort_from_scratch(score, n, list);
    for (int64_t p = 0; p < n; ++p) last[p] = static_cast<int32_t>(list.ranking[p].doc);
}

}  // namespace rankwise
