// TREC files as columns: the text is cut into chunks that begin at a new topic, chunks are read in
// parallel, and the rows are then brought together topic by topic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "trec_text.hpp"

namespace rankwise::trec {

// A vector whose new entries are uninitialised: it is about to be filled.
template <class T>
struct Uninitialised : std::allocator<T> {
    Uninitialised() = default;
    template <class U>
    Uninitialised(const Uninitialised<U>&) noexcept {}
    template <class U>
    struct rebind {
        using other = Uninitialised<U>;
    };
    template <class U>
    void construct(U* p) noexcept {
        ::new (static_cast<void*>(p)) U;
    }
    template <class U, class... Arguments>
    void construct(U* p, Arguments&&... arguments) {
        ::new (static_cast<void*>(p)) U(std::forward<Arguments>(arguments)...);
    }
};
template <class T>
using Buffer = std::vector<T, Uninitialised<T>>;

// A column of strings: one piece of memory and where each string starts in it.
struct Strings {
    const char* bytes;
    const int64_t* offsets;
    int64_t size;

    std::string_view operator[](int64_t i) const {
        return {bytes + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i])};
    }
};

// The same, owned.
struct Text {
    Buffer<char> bytes;
    Buffer<int64_t> offsets{0};

    void append(std::string_view s) {
        bytes.insert(bytes.end(), s.begin(), s.end());
        offsets.push_back(static_cast<int64_t>(bytes.size()));
    }
    Strings view() const {
        return {bytes.data(), offsets.data(), static_cast<int64_t>(offsets.size()) - 1};
    }
};

// Rows grouped by topic, topics in order of first appearance, rows of a topic in file order.
struct Columns {
    Text topics, docs, extra;
    Buffer<int64_t> offsets{0};
    Buffer<double> value;
    std::string tag;
    int64_t rank_conflicts = 0;
};

inline uint64_t hash_bytes(std::string_view s) {
    constexpr uint64_t k = 0x9e3779b97f4a7c15ULL;
    const char* p = s.data();
    size_t n = s.size();
    uint64_t h = n * k;
    const auto step = [&h](uint64_t word) {
        h = (h ^ word) * 0xff51afd7ed558ccdULL;
        h ^= h >> 32;
    };
    uint64_t word = 0;
    for (; n >= 8; p += 8, n -= 8) {
        std::memcpy(&word, p, 8);
        step(word);
    }
    if (s.size() >= 8) {
        std::memcpy(&word, s.data() + s.size() - 8, 8);
        step(word);
    } else {
        word = 0;
        for (size_t i = 0; i < n; ++i)
            word |= uint64_t{static_cast<unsigned char>(p[i])} << (8 * i);
        step(word);
    }
    return (h * k) ^ (h >> 29);
}

// Finds equal strings among the rows of one topic. The table is kept from topic to topic.
class Duplicates {
  public:
    void start(size_t n) {
        size_t capacity = 16;
        while (capacity < 2 * n) capacity *= 2;
        slots_.assign(capacity, 0);
    }
    // The earlier row that `same` calls equal to row `i`, or -1 after entering it.
    template <class Same>
    int64_t find_or_add(uint64_t hash, int64_t i, Same&& same) {
        const size_t mask = slots_.size() - 1;
        for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
            if (slots_[slot] == 0) {
                slots_[slot] = (hash & high) | static_cast<uint64_t>(i + 1);
                return -1;
            }
            if ((slots_[slot] & high) == (hash & high)) {
                const auto other = static_cast<int64_t>(slots_[slot] & ~high) - 1;
                if (same(other)) return other;
            }
        }
    }

  private:
    static constexpr uint64_t high = 0xffffffff00000000ULL;
    std::vector<uint64_t> slots_;
};

// The id on the line at `p`, empty for a blank line or a comment; moves `p` behind the line.
inline std::string_view line_topic(const char*& p, const char* end) {
    while (p < end && *p != '\n' && is_space(static_cast<unsigned char>(*p))) ++p;
    const char* const begin = p;
    while (p < end && !is_space(static_cast<unsigned char>(*p))) ++p;
    const std::string_view id(begin, static_cast<size_t>(p - begin));
    if (p < end) {
        const void* stop = std::memchr(p, '\n', static_cast<size_t>(end - p));
        p = stop == nullptr ? end : static_cast<const char*>(stop) + 1;
    }
    return !id.empty() && id[0] == '#' ? std::string_view() : id;
}

// Where chunks of about `target` bytes begin: each at the first line of a topic, so that a topic
// whose lines are together is never cut.
inline std::vector<size_t> chunk_starts(std::string_view text, size_t target) {
    // A byte order mark is no part of the first id.
    std::vector<size_t> starts{text.substr(0, 3) == "\xEF\xBB\xBF" ? size_t{3} : size_t{0}};
    const char *const base = text.data(), *const end = base + text.size();
    for (size_t nominal = target; nominal < text.size(); nominal += target) {
        if (nominal <= starts.back()) continue;
        const char* p =
            static_cast<const char*>(std::memchr(base + nominal, '\n', text.size() - nominal));
        if (p == nullptr) break;
        ++p;
        std::string_view first;
        while (p < end) {
            const char* const line = p;
            const std::string_view id = line_topic(p, end);
            if (id.empty()) continue;
            if (first.empty()) first = id;
            if (id != first) {
                starts.push_back(static_cast<size_t>(line - base));
                break;
            }
        }
        if (p >= end) break;
    }
    starts.push_back(text.size());
    return starts;
}

// Small enough for the threads to share a small file, large enough that a chunk is mostly work.
inline size_t chunk_target(size_t n_bytes) {
    return std::clamp<size_t>(n_bytes / 128, size_t{1} << 17, size_t{1} << 19);
}

// Throws the failure that comes first in the file, as `name:line: message`.
inline void raise_first(std::string_view text, const std::string& name,
                        const std::vector<std::optional<Failure>>& failures) {
    const Failure* first = nullptr;
    for (const auto& f : failures)
        if (f && (first == nullptr || f->pos < first->pos)) first = &*f;
    if (first != nullptr)
        throw std::invalid_argument(name + ":" +
                                    std::to_string(line_number(text.data(), first->pos)) + ": " +
                                    first->message);
}

inline std::string duplicate_message(std::string_view doc, std::string_view qid, size_t line) {
    return "a document must appear once in a topic, got " + quoted(doc) + " in topic " +
           quoted(qid) + " again (first on line " + std::to_string(line) + ")";
}

// Rows of one topic that follow each other in the file.
struct Segment {
    std::string_view qid;
    size_t pos;
    int64_t first_row, first_byte, first_extra_byte;
    int64_t topic = 0;
    int64_t n_rows = 0, n_bytes = 0, n_extra_bytes = 0;
};

// What one chunk holds, in file order.
struct Chunk {
    std::vector<char> bytes, extra_bytes;
    std::vector<uint32_t> sizes, extra_sizes;
    std::vector<double> value;
    std::vector<int64_t> rank;
    std::vector<Segment> segments;
    std::string_view tag;
};

inline void read_chunk(Kind kind, bool keep_extra, const char* base, size_t begin, size_t stop,
                       Chunk& out) {
    const char *p = base + begin, *const end = base + stop;
    const size_t guess = (stop - begin) / 24 + 1;
    out.value.reserve(guess);
    out.sizes.reserve(guess);
    out.bytes.reserve((stop - begin) / 2);
    Row row;
    const char* line = p;
    while (next_row(kind, base, p, end, row)) {
        if (out.segments.empty() || out.segments.back().qid != row.qid)
            out.segments.push_back({row.qid, static_cast<size_t>(line - base),
                                    static_cast<int64_t>(out.value.size()),
                                    static_cast<int64_t>(out.bytes.size()),
                                    static_cast<int64_t>(out.extra_bytes.size())});
        Segment& segment = out.segments.back();
        out.bytes.insert(out.bytes.end(), row.doc.begin(), row.doc.end());
        out.sizes.push_back(static_cast<uint32_t>(row.doc.size()));
        out.value.push_back(row.value);
        segment.n_rows += 1;
        segment.n_bytes += static_cast<int64_t>(row.doc.size());
        if (kind == Kind::run) {
            out.rank.push_back(row.rank);
            out.tag = row.extra;
        }
        if (keep_extra) {
            out.extra_bytes.insert(out.extra_bytes.end(), row.extra.begin(), row.extra.end());
            out.extra_sizes.push_back(static_cast<uint32_t>(row.extra.size()));
            segment.n_extra_bytes += static_cast<int64_t>(row.extra.size());
        }
        line = p;
    }
}

// Numbers the topics by first appearance. Returns the segments by topic, in file order inside each.
inline std::vector<std::pair<const Chunk*, const Segment*>> order_segments(
    std::vector<Chunk>& chunks, Text& topics) {
    std::unordered_map<std::string_view, int64_t> number;
    std::vector<std::pair<const Chunk*, const Segment*>> order;
    for (Chunk& chunk : chunks)
        for (Segment& segment : chunk.segments) {
            const auto [at, fresh] = number.emplace(segment.qid, number.size());
            if (fresh) topics.append(segment.qid);
            segment.topic = at->second;
            order.emplace_back(&chunk, &segment);
        }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
        return a.second->topic < b.second->topic;
    });
    return order;
}

// Byte where the line of row `i` of the grouped columns starts.
inline size_t row_position(Kind kind, std::string_view text,
                           const std::vector<std::pair<const Chunk*, const Segment*>>& order,
                           int64_t i) {
    size_t s = 0;
    while (i >= order[s].second->n_rows) i -= order[s++].second->n_rows;
    const char* const end = text.data() + text.size();
    const char* p = text.data() + order[s].second->pos;
    Row row;
    for (; i > 0; --i) next_row(kind, text.data(), p, end, row);
    // Comments and blank lines before the row itself are passed over.
    while (true) {
        const char* const line = p;
        if (!line_topic(p, end).empty()) return static_cast<size_t>(line - text.data());
    }
}

// Documents whose stated rank puts them above a document with a higher score. `order` holds the
// rows of the topic by descending score.
template <class Score, class Rank>
int64_t count_rank_conflicts(int64_t n, Score&& score, Rank&& rank) {
    int64_t conflicts = 0, above = no_rank, level = no_rank;
    for (int64_t i = 0; i < n; ++i) {
        if (i > 0 && score(i) < score(i - 1)) above = std::max(above, level);
        const int64_t r = rank(i);
        if (r == no_rank) continue;
        if (r < above) ++conflicts;
        level = std::max(level, r);
    }
    return conflicts;
}

// Positions 0..n-1 by descending score, equal scores in input order.
inline void order_by_score(const double* score, int64_t n, std::vector<int64_t>& order) {
    order.resize(static_cast<size_t>(n));
    bool sorted = true;
    for (int64_t i = 0; i < n; ++i) {
        order[i] = i;
        sorted = sorted && (i == 0 || score[i] <= score[i - 1]);
    }
    if (!sorted)
        std::sort(order.begin(), order.end(), [score](int64_t a, int64_t b) {
            return score[a] > score[b] || (score[a] == score[b] && a < b);
        });
}

// Copies the segments to their places in the grouped columns.
inline Buffer<int64_t> gather_columns(
    Kind kind, bool keep_extra, const std::vector<std::pair<const Chunk*, const Segment*>>& order,
    Columns& out, int n_threads) {
    const auto n_segments = static_cast<int64_t>(order.size());
    std::vector<int64_t> row(n_segments + 1, 0), byte(n_segments + 1, 0), more(n_segments + 1, 0);
    out.offsets.assign(out.topics.offsets.size(), 0);
    for (int64_t s = 0; s < n_segments; ++s) {
        const Segment& segment = *order[s].second;
        row[s + 1] = row[s] + segment.n_rows;
        byte[s + 1] = byte[s] + segment.n_bytes;
        more[s + 1] = more[s] + segment.n_extra_bytes;
        out.offsets[segment.topic + 1] = row[s + 1];
    }
    const int64_t n = row[n_segments];
    out.value.resize(n);
    out.docs.bytes.resize(byte[n_segments]);
    out.docs.offsets.resize(n + 1);
    Buffer<int64_t> rank(kind == Kind::run ? n : 0);
    if (keep_extra) {
        out.extra.bytes.resize(more[n_segments]);
        out.extra.offsets.resize(n + 1);
    }
    parallel_for(n_segments, n, n_threads, [&](int64_t s) {
        const auto& [chunk, segment] = order[s];
        const int64_t from = segment->first_row, count = segment->n_rows;
        std::copy_n(chunk->value.data() + from, count, out.value.data() + row[s]);
        std::copy_n(chunk->bytes.data() + segment->first_byte, segment->n_bytes,
                    out.docs.bytes.data() + byte[s]);
        int64_t at = byte[s];
        for (int64_t i = 0; i < count; ++i)
            out.docs.offsets[row[s] + i + 1] = at += chunk->sizes[from + i];
        if (kind == Kind::run) std::copy_n(chunk->rank.data() + from, count, rank.data() + row[s]);
        if (keep_extra) {
            std::copy_n(chunk->extra_bytes.data() + segment->first_extra_byte,
                        segment->n_extra_bytes, out.extra.bytes.data() + more[s]);
            at = more[s];
            for (int64_t i = 0; i < count; ++i)
                out.extra.offsets[row[s] + i + 1] = at += chunk->extra_sizes[from + i];
        }
    });
    return rank;
}

// The first pair of equal rows of a topic (document, and subtopic where kept), or {-1, -1}.
inline std::pair<int64_t, int64_t> find_duplicate(const Strings& docs, const Strings* extra,
                                                  int64_t begin, int64_t end) {
    thread_local Duplicates seen;
    seen.start(static_cast<size_t>(end - begin));
    for (int64_t i = begin; i < end; ++i) {
        uint64_t hash = hash_bytes(docs[i]);
        if (extra != nullptr) hash ^= hash_bytes((*extra)[i]) * 3;
        const int64_t other = seen.find_or_add(hash, i - begin, [&](int64_t j) {
            return docs[begin + j] == docs[i] &&
                   (extra == nullptr || (*extra)[begin + j] == (*extra)[i]);
        });
        if (other >= 0) return {begin + other, i};
    }
    return {-1, -1};
}

// Reads a whole run or qrels file. Throws std::invalid_argument with `name`, line and what was
// expected. The result does not depend on the number of threads, nor on the size of the chunks.
inline Columns read_columns(Kind kind, std::string_view text, const std::string& name,
                            bool keep_extra, int n_threads, size_t chunk_bytes = 0) {
    const std::vector<size_t> starts =
        chunk_starts(text, chunk_bytes > 0 ? chunk_bytes : chunk_target(text.size()));
    const auto n_chunks = static_cast<int64_t>(starts.size()) - 1;
    std::vector<Chunk> chunks(n_chunks);
    std::vector<std::optional<Failure>> failures(n_chunks);
    parallel_for(n_chunks, static_cast<int64_t>(text.size() / 16), n_threads, [&](int64_t c) {
        try {
            read_chunk(kind, keep_extra, text.data(), starts[c], starts[c + 1], chunks[c]);
        } catch (Failure& failure) {
            failures[c] = std::move(failure);
        }
    });
    raise_first(text, name, failures);

    Columns out;
    const auto order = order_segments(chunks, out.topics);
    if (order.empty())
        throw std::invalid_argument(name + ": expected at least one line, got an empty file");
    for (const Chunk& chunk : chunks)
        if (!chunk.tag.empty()) out.tag = std::string(chunk.tag);
    const Buffer<int64_t> rank = gather_columns(kind, keep_extra, order, out, n_threads);

    const auto n_topics = static_cast<int64_t>(out.offsets.size()) - 1;
    std::vector<int64_t> conflicts(n_topics, 0);
    failures.assign(n_topics, std::nullopt);
    const Strings docs = out.docs.view(), extra = out.extra.view(), topics = out.topics.view();
    parallel_for(n_topics, static_cast<int64_t>(text.size() / 16), n_threads, [&](int64_t t) {
        const int64_t begin = out.offsets[t], end = out.offsets[t + 1];
        const auto [first, second] =
            find_duplicate(docs, keep_extra ? &extra : nullptr, begin, end);
        if (second >= 0) {
            const size_t line = line_number(text.data(), row_position(kind, text, order, first));
            failures[t] = Failure{row_position(kind, text, order, second),
                                  duplicate_message(docs[second], topics[t], line)};
        }
        if (kind != Kind::run) return;
        thread_local std::vector<int64_t> by_score;
        const double* score = out.value.data() + begin;
        order_by_score(score, end - begin, by_score);
        conflicts[t] = count_rank_conflicts(
            end - begin, [&](int64_t i) { return score[by_score[i]]; },
            [&](int64_t i) { return rank[begin + by_score[i]]; });
    });
    raise_first(text, name, failures);
    for (const int64_t c : conflicts) out.rank_conflicts += c;
    return out;
}

}  // namespace rankwise::trec
