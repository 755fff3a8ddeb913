// Text of TREC runs and qrels.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "trec_columns.hpp"

namespace rankwise::trec {

// The shortest decimal that reads back as the same double; integers without a point.
inline void append_number(std::string& out, double value) {
    char buffer[40];
    const auto end =
        value == std::floor(value) && std::fabs(value) < 1e15
            ? std::to_chars(buffer, buffer + sizeof buffer, static_cast<int64_t>(value)).ptr
            : std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
    if (value == 0 && std::signbit(value)) out += '-';
    out.append(buffer, end);
}

// Lines `qid Q0 doc rank score tag`: topics in stored order, documents best first, equal scores by
// descending id, ranks from 1.
inline std::string format_run(Strings topics, const int64_t* offsets, Strings docs,
                              const double* score, std::string_view tag) {
    std::string out;
    std::vector<int64_t> order;
    for (int64_t t = 0; t < topics.size; ++t) {
        const int64_t begin = offsets[t], n = offsets[t + 1] - begin;
        order.resize(n);
        std::iota(order.begin(), order.end(), begin);
        std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            return score[a] > score[b] || (score[a] == score[b] && docs[a] > docs[b]);
        });
        for (int64_t i = 0; i < n; ++i) {
            out.append(topics[t]).append(" Q0 ").append(docs[order[i]]).append(" ");
            out.append(std::to_string(i + 1)).append(" ");
            append_number(out, score[order[i]]);
            out.append(" ").append(tag).append("\n");
        }
    }
    return out;
}

// Lines `qid iteration doc label` in stored order; the iteration is 0 without subtopics.
inline std::string format_qrels(Strings topics, const int64_t* offsets, Strings docs,
                                const double* label, const Strings* subtopics) {
    std::string out;
    for (int64_t t = 0; t < topics.size; ++t)
        for (int64_t i = offsets[t]; i < offsets[t + 1]; ++i) {
            out.append(topics[t]).append(" ");
            out.append(subtopics != nullptr ? (*subtopics)[i] : std::string_view("0"));
            out.append(" ").append(docs[i]).append(" ");
            append_number(out, label[i]);
            out.append("\n");
        }
    return out;
}

}  // namespace rankwise::trec
