// Joining a run with judgements. A joined topic holds the retrieved documents, best first, and then
// the judged ones that the run missed, scored -inf. Documents whose scores are equal (as floats,
// and so as doubles) stand in descending order of their ids: trec_eval's rule for ties.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trec_columns.hpp"

namespace rankwise::trec {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
constexpr double unjudged = std::numeric_limits<double>::quiet_NaN();

// Judgements, and one small hash table of documents per topic: looking up a document that was not
// judged costs one probe of a table that stays in the cache while its topic is read.
class Judgements {
  public:
    Judgements(Strings topics, Strings docs, const int64_t* offsets, const double* label)
        : topics_(topics), docs_(docs), offsets_(offsets), label_(label) {
        const int64_t n = topics.size;
        starts_.reserve(n + 1);
        starts_.push_back(0);
        number_.reserve(n);
        for (int64_t t = 0; t < n; ++t) {
            number_.emplace(topics[t], t);
            int64_t capacity = 4;
            while (capacity < 2 * (offsets[t + 1] - offsets[t])) capacity *= 2;
            starts_.push_back(starts_.back() + capacity);
        }
        slots_.assign(starts_.back(), 0);
        for (int64_t t = 0; t < n; ++t)
            for (int64_t i = offsets[t]; i < offsets[t + 1]; ++i) enter(t, i);
    }

    int64_t n_topics() const { return topics_.size; }
    int64_t begin(int64_t t) const { return offsets_[t]; }
    int64_t end(int64_t t) const { return offsets_[t + 1]; }
    double label(int64_t i) const { return label_[i]; }
    std::string_view doc(int64_t i) const { return docs_[i]; }

    int64_t topic(std::string_view qid) const {
        const auto at = number_.find(qid);
        return at == number_.end() ? -1 : at->second;
    }

    // Row of the judgement, or -1.
    int64_t find(int64_t t, std::string_view doc, uint64_t hash) const {
        const auto mask = static_cast<uint64_t>(starts_[t + 1] - starts_[t]) - 1;
        const uint64_t* table = slots_.data() + starts_[t];
        for (uint64_t slot = hash & mask; table[slot] != 0; slot = (slot + 1) & mask) {
            if ((table[slot] & high) != (hash & high)) continue;
            const int64_t i = offsets_[t] + static_cast<int64_t>(table[slot] & ~high) - 1;
            if (docs_[i] == doc) return i;
        }
        return -1;
    }

  private:
    static constexpr uint64_t high = 0xffffffff00000000ULL;

    void enter(int64_t t, int64_t i) {
        const uint64_t hash = hash_bytes(docs_[i]);
        const auto mask = static_cast<uint64_t>(starts_[t + 1] - starts_[t]) - 1;
        uint64_t* table = slots_.data() + starts_[t];
        uint64_t slot = hash & mask;
        while (table[slot] != 0) slot = (slot + 1) & mask;
        table[slot] = (hash & high) | static_cast<uint64_t>(i - offsets_[t] + 1);
    }

    Strings topics_, docs_;
    const int64_t* offsets_;
    const double* label_;
    std::unordered_map<std::string_view, int64_t> number_;
    std::vector<int64_t> starts_;
    std::vector<uint64_t> slots_;
};

// A retrieved document on its way into the joined lists.
struct Retrieved {
    std::string_view doc;
    uint64_t hash;
    double score;
    int64_t rank;
    int64_t row;  // the row of the columns; not used where a file is joined
};

// Documents best first, those with equal float scores by descending id.
inline void order_retrieved(std::vector<Retrieved>& rows) {
    const auto higher = [](const Retrieved& a, const Retrieved& b) { return a.score > b.score; };
    if (!std::is_sorted(rows.begin(), rows.end(), higher)) {
        thread_local std::vector<std::pair<double, uint32_t>> keys;
        thread_local std::vector<Retrieved> sorted;
        keys.resize(rows.size());
        for (size_t i = 0; i < rows.size(); ++i)
            keys[i] = {-rows[i].score, static_cast<uint32_t>(i)};
        std::sort(keys.begin(), keys.end());
        sorted.clear();
        for (const auto& key : keys) sorted.push_back(rows[key.second]);
        rows.swap(sorted);
    }
}

inline void order_ties(std::vector<Retrieved>& rows) {
    for (size_t i = 0; i + 1 < rows.size();) {
        const auto value = static_cast<float>(rows[i].score);
        size_t j = i + 1;
        while (j < rows.size() && static_cast<float>(rows[j].score) == value) ++j;
        if (j > i + 1)
            std::sort(rows.begin() + static_cast<int64_t>(i),
                      rows.begin() + static_cast<int64_t>(j),
                      [](const Retrieved& a, const Retrieved& b) { return a.doc > b.doc; });
        i = j;
    }
}

// Lists joined so far, by the thread that reads one chunk.
struct Lists {
    struct Topic {
        int64_t topic;
        size_t begin, end;
        int64_t n_retrieved;
    };
    std::vector<double> label, score;
    // Where each document is: a row of the run from 0, or -1 - row of the qrels. Kept on request.
    std::vector<int64_t> source;
    std::vector<uint8_t> pooled;
    std::vector<Topic> topics;
    std::vector<std::string_view> unjudged_topics;
    int64_t rank_conflicts = 0;
};

// Appends topic `t` (-1: without judgements) with the given retrieved documents, which it reorders.
inline void join_topic(const Judgements& judged, int64_t t, std::vector<Retrieved>& rows,
                       bool keep_source, Lists& out) {
    order_retrieved(rows);
    out.rank_conflicts += count_rank_conflicts(
        static_cast<int64_t>(rows.size()), [&](int64_t i) { return rows[i].score; },
        [&](int64_t i) { return rows[i].rank; });
    if (t < 0) return;
    order_ties(rows);
    const size_t begin = out.label.size();
    thread_local std::vector<uint8_t> found;
    found.assign(static_cast<size_t>(judged.end(t) - judged.begin(t)), 0);
    for (const Retrieved& row : rows) {
        const int64_t i = judged.find(t, row.doc, row.hash);
        double label = unjudged;
        if (i >= 0) {
            found[i - judged.begin(t)] = 1;
            if (judged.label(i) >= 0) label = judged.label(i);
        }
        out.label.push_back(label);
        out.score.push_back(row.score);
        if (keep_source) {
            out.source.push_back(row.row);
            out.pooled.push_back(i >= 0);
        }
    }
    for (int64_t i = judged.begin(t); i < judged.end(t); ++i) {
        if (found[i - judged.begin(t)] || !(judged.label(i) >= 0)) continue;
        out.label.push_back(judged.label(i));
        out.score.push_back(minus_infinity);
        if (keep_source) {
            out.source.push_back(-1 - i);
            out.pooled.push_back(1);
        }
    }
    out.topics.push_back({t, begin, out.label.size(), static_cast<int64_t>(rows.size())});
}

// All judged topics in the order of the qrels.
struct Joined {
    std::vector<int64_t> offsets;
    std::vector<double> label, score;
    std::vector<int64_t> source;
    std::vector<uint8_t> pooled;
    int64_t n_missing = 0;   // judged topics that the run does not answer
    int64_t n_unjudged = 0;  // topics of the run without judgements, left out
    int64_t rank_conflicts = 0;
    std::string tag;
    bool contiguous = true;  // false: a topic came twice, nothing was joined
};

// Brings the lists of all chunks into the order of the qrels; topics that no chunk holds get
// their judged documents, scored -inf.
inline void assemble(const Judgements& judged, const std::vector<Lists>& parts, bool keep_source,
                     Joined& out, int n_threads) {
    const int64_t n = judged.n_topics();
    std::vector<std::pair<const Lists*, const Lists::Topic*>> home(n, {nullptr, nullptr});
    std::unordered_map<std::string_view, int> others;
    for (const Lists& part : parts) {
        out.rank_conflicts += part.rank_conflicts;
        for (const Lists::Topic& topic : part.topics) {
            if (home[topic.topic].first != nullptr) out.contiguous = false;
            home[topic.topic] = {&part, &topic};
        }
        for (const std::string_view qid : part.unjudged_topics)
            if (++others[qid] > 1) out.contiguous = false;
    }
    if (!out.contiguous) return;
    out.n_unjudged = static_cast<int64_t>(others.size());
    Lists missing;
    std::vector<Retrieved> nothing;
    for (int64_t t = 0; t < n; ++t)
        if (home[t].first == nullptr) join_topic(judged, t, nothing, keep_source, missing);
    out.n_missing = static_cast<int64_t>(missing.topics.size());
    for (const Lists::Topic& topic : missing.topics) home[topic.topic] = {&missing, &topic};
    out.offsets.assign(n + 1, 0);
    for (int64_t t = 0; t < n; ++t)
        out.offsets[t + 1] =
            out.offsets[t] + static_cast<int64_t>(home[t].second->end - home[t].second->begin);
    out.label.resize(out.offsets[n]);
    out.score.resize(out.offsets[n]);
    out.source.resize(keep_source ? out.offsets[n] : 0);
    out.pooled.resize(keep_source ? out.offsets[n] : 0);
    parallel_for(n, out.offsets[n], n_threads, [&](int64_t t) {
        const auto& [part, topic] = home[t];
        const auto count = static_cast<int64_t>(topic->end - topic->begin);
        std::copy_n(part->label.data() + topic->begin, count, out.label.data() + out.offsets[t]);
        std::copy_n(part->score.data() + topic->begin, count, out.score.data() + out.offsets[t]);
        if (!keep_source) return;
        std::copy_n(part->source.data() + topic->begin, count, out.source.data() + out.offsets[t]);
        std::copy_n(part->pooled.data() + topic->begin, count, out.pooled.data() + out.offsets[t]);
    });
}

// Joins one chunk of a run file.
class ChunkJoin {
  public:
    ChunkJoin(const Judgements& judged, const char* base, Lists& out)
        : judged_(judged), base_(base), out_(out) {}

    std::string_view read(size_t begin, size_t stop) {
        const char *p = base_ + begin, *const end = base_ + stop;
        Row row;
        std::string_view qid;
        while (next_row(Kind::run, base_, p, end, row)) {
            if (row.qid != qid) {
                finish(qid);
                qid = row.qid;
            }
            rows_.push_back({row.doc, hash_bytes(row.doc), row.value, row.rank, 0});
        }
        finish(qid);
        return row.extra;
    }

  private:
    void finish(std::string_view qid) {
        if (rows_.empty()) return;
        seen_.start(rows_.size());
        for (size_t i = 0; i < rows_.size(); ++i) {
            const int64_t other =
                seen_.find_or_add(rows_[i].hash, static_cast<int64_t>(i),
                                  [&](int64_t j) { return rows_[j].doc == rows_[i].doc; });
            if (other >= 0) fail(qid, rows_[other], rows_[i]);
        }
        const int64_t t = judged_.topic(qid);
        if (t < 0) out_.unjudged_topics.push_back(qid);
        join_topic(judged_, t, rows_, false, out_);
        rows_.clear();
    }

    [[noreturn]] void fail(std::string_view qid, const Retrieved& first, const Retrieved& second) {
        // The document's own bytes lie on its line, whatever comments stand before it.
        const auto at = [this](const Retrieved& r) {
            return static_cast<size_t>(r.doc.data() - base_);
        };
        throw Failure{at(second),
                      duplicate_message(second.doc, qid, line_number(base_, at(first)))};
    }

    const Judgements& judged_;
    const char* base_;
    Lists& out_;
    std::vector<Retrieved> rows_;
    Duplicates seen_;
};

// Joins a run file without making columns of it. Where a topic's lines are not together the result
// says so (`contiguous`) and is otherwise empty: read the columns and join those.
inline Joined join_text(const Judgements& judged, std::string_view text, const std::string& name,
                        int n_threads) {
    const std::vector<size_t> starts = chunk_starts(text, chunk_target(text.size()));
    const auto n_chunks = static_cast<int64_t>(starts.size()) - 1;
    std::vector<Lists> parts(n_chunks);
    std::vector<std::string_view> tags(n_chunks);
    std::vector<std::optional<Failure>> failures(n_chunks);
    parallel_for(n_chunks, static_cast<int64_t>(text.size()), n_threads, [&](int64_t c) {
        try {
            tags[c] = ChunkJoin(judged, text.data(), parts[c]).read(starts[c], starts[c + 1]);
        } catch (Failure& failure) {
            failures[c] = std::move(failure);
        }
    });
    raise_first(text, name, failures);
    Joined out;
    for (const std::string_view tag : tags)
        if (!tag.empty()) out.tag = std::string(tag);
    if (out.tag.empty())
        throw std::invalid_argument(name + ": expected at least one line, got an empty file");
    assemble(judged, parts, false, out, n_threads);
    return out;
}

// Joins the columns of a run. With keep_source the result says where each document came from and
// which ones are in the qrels.
inline Joined join_columns(const Judgements& judged, Strings topics, Strings docs,
                           const int64_t* offsets, const double* score, bool keep_source,
                           int n_threads) {
    std::vector<Lists> parts(topics.size);
    parallel_for(topics.size, docs.size * 20, n_threads, [&](int64_t q) {
        const int64_t t = judged.topic(topics[q]);
        if (t < 0) {
            parts[q].unjudged_topics.push_back(topics[q]);
            return;
        }
        thread_local std::vector<Retrieved> rows;
        rows.clear();
        for (int64_t i = offsets[q]; i < offsets[q + 1]; ++i)
            rows.push_back({docs[i], hash_bytes(docs[i]), score[i], no_rank, i});
        join_topic(judged, t, rows, keep_source, parts[q]);
    });
    Joined out;
    assemble(judged, parts, keep_source, out, n_threads);
    return out;
}

}  // namespace rankwise::trec
