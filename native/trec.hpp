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

// Joined topics, one after the other. Label -1: in the qrels, but not judged.
struct Lists {
    struct Topic {
        int64_t topic;
        size_t begin, end;
    };
    Buffer<double> label, score;
    // Where each document is: a row of the run from 0, or -1 - row of the qrels. Kept on request.
    Buffer<int64_t> source;
    std::vector<Topic> topics;
    std::vector<std::string_view> others;  // topics of the run without judgements
    int64_t rank_conflicts = 0;
    int64_t n_pooled = 0;  // retrieved documents with label -1

    void clear() {
        label.clear(), score.clear(), source.clear(), topics.clear(), others.clear();
        rank_conflicts = n_pooled = 0;
    }
};

// Appends topic `t` with the given retrieved documents, which stand best first; the judged
// documents among them are marked in `found`.
inline void append_topic(const Judgements& judged, int64_t t, const std::vector<Retrieved>& rows,
                         bool keep_source, std::vector<uint8_t>& found, Lists& out) {
    const size_t begin = out.label.size();
    const auto n_judged = static_cast<size_t>(judged.end(t) - judged.begin(t));
    out.label.resize(begin + rows.size() + n_judged);
    out.score.resize(begin + rows.size() + n_judged);
    if (keep_source) out.source.resize(begin + rows.size() + n_judged);
    found.assign(n_judged, 0);
    size_t at = begin;
    for (const Retrieved& row : rows) {
        const int64_t i = judged.find(t, row.doc, row.hash);
        double label = unjudged;
        if (i >= 0) {
            found[i - judged.begin(t)] = 1;
            label = judged.label(i) < 0 ? -1.0 : judged.label(i);
            out.n_pooled += label < 0;
        }
        out.label[at] = label;
        out.score[at] = row.score;
        if (keep_source) out.source[at] = row.row;
        ++at;
    }
    for (int64_t i = judged.begin(t); i < judged.end(t); ++i) {
        if (found[i - judged.begin(t)] || judged.label(i) < 0) continue;
        out.label[at] = judged.label(i);
        out.score[at] = minus_infinity;
        if (keep_source) out.source[at] = -1 - i;
        ++at;
    }
    out.label.resize(at);
    out.score.resize(at);
    if (keep_source) out.source.resize(at);
    out.topics.push_back({t, begin, at});
}

// Puts the retrieved documents of topic `t` in order and appends them; -1 is a topic without
// judgements, whose documents are only looked at for conflicting ranks.
inline void join_topic(const Judgements& judged, int64_t t, std::string_view qid,
                       std::vector<Retrieved>& rows, bool keep_source, Lists& out) {
    thread_local std::vector<uint8_t> found;
    order_retrieved(rows);
    out.rank_conflicts += count_rank_conflicts(
        static_cast<int64_t>(rows.size()), [&](int64_t i) { return rows[i].score; },
        [&](int64_t i) { return rows[i].rank; });
    if (t < 0) {
        out.others.push_back(qid);
        return;
    }
    order_ties(rows);
    append_topic(judged, t, rows, keep_source, found, out);
}

// Queries of joined documents, ready for a metric.
struct Joined {
    Buffer<int64_t> topics;  // of the qrels
    Buffer<int64_t> offsets{0};
    Buffer<double> label, score;
    Buffer<int64_t> source;
    int64_t n_pooled = 0;
};

struct Place {
    const Lists* lists;
    const Lists::Topic* topic;
};

inline Joined concatenate(const std::vector<Place>& places, bool keep_source, int n_threads) {
    Joined out;
    const auto n = static_cast<int64_t>(places.size());
    out.topics.resize(n);
    out.offsets.resize(n + 1);
    for (int64_t q = 0; q < n; ++q) {
        const Lists::Topic& topic = *places[q].topic;
        out.topics[q] = topic.topic;
        out.offsets[q + 1] = out.offsets[q] + static_cast<int64_t>(topic.end - topic.begin);
    }
    out.label.resize(out.offsets[n]);
    out.score.resize(out.offsets[n]);
    out.source.resize(keep_source ? out.offsets[n] : 0);
    parallel_for(n, out.offsets[n], n_threads, [&](int64_t q) {
        const auto& [lists, topic] = places[q];
        const auto copy = [&](const auto& from, auto& to) {
            std::copy(from.begin() + static_cast<int64_t>(topic->begin),
                      from.begin() + static_cast<int64_t>(topic->end), to.begin() + out.offsets[q]);
        };
        copy(lists->label, out.label);
        copy(lists->score, out.score);
        if (keep_source) copy(lists->source, out.source);
    });
    return out;
}

// Joins one chunk of a run file.
class ChunkJoin {
  public:
    ChunkJoin(const Judgements& judged, const char* base, Lists& out)
        : judged_(judged), base_(base), out_(out) {}

    // Returns the last line's tag.
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
        join_topic(judged_, judged_.topic(qid), qid, rows_, false, out_);
        rows_.clear();
    }

    [[noreturn]] void fail(std::string_view qid, const Retrieved& first, const Retrieved& second) {
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

// Joins a run file block by block without making columns of it, so that memory holds one block.
// It needs the lines of each topic together; where they are not, `contiguous` turns false and the
// caller has to read the columns and join those.
class TextJoin {
  public:
    TextJoin(const Judgements& judged, std::string_view text, std::string name,
             size_t chunk_bytes = 0, size_t block_bytes = size_t{32} << 20)
        : judged_(judged),
          text_(text),
          name_(std::move(name)),
          starts_(chunk_starts(text, chunk_bytes > 0 ? chunk_bytes : chunk_target(text.size()))),
          block_bytes_(block_bytes),
          seen_(judged.n_topics(), false) {}

    // The next topics; false after the last, and when a topic came a second time.
    bool next(Joined& out, int n_threads) {
        const size_t n_chunks = starts_.size() - 1;
        if (at_ == n_chunks || !contiguous_) return false;
        size_t stop = at_ + 1;
        while (stop < n_chunks && starts_[stop + 1] - starts_[at_] <= block_bytes_) ++stop;
        const auto n = static_cast<int64_t>(stop - at_);
        if (static_cast<int64_t>(parts_.size()) < n) parts_.resize(n);
        std::vector<std::string_view> tags(n);
        std::vector<std::optional<Failure>> failures(n);
        parallel_for(n, static_cast<int64_t>(starts_[stop] - starts_[at_]), n_threads,
                     [&](int64_t c) {
                         parts_[c].clear();
                         try {
                             ChunkJoin chunk(judged_, text_.data(), parts_[c]);
                             tags[c] = chunk.read(starts_[at_ + c], starts_[at_ + c + 1]);
                         } catch (Failure& failure) {
                             failures[c] = std::move(failure);
                         }
                     });
        raise_first(text_, name_, failures);
        at_ = stop;
        std::vector<Place> places;
        int64_t n_pooled = 0;
        for (int64_t c = 0; c < n; ++c) {
            if (!tags[c].empty()) tag_ = std::string(tags[c]);
            rank_conflicts_ += parts_[c].rank_conflicts;
            n_pooled += parts_[c].n_pooled;
            for (const Lists::Topic& topic : parts_[c].topics) {
                if (seen_[topic.topic]) contiguous_ = false;
                seen_[topic.topic] = true;
                places.push_back({&parts_[c], &topic});
            }
            for (const std::string_view qid : parts_[c].others)
                if (!others_.emplace(qid, 1).second) contiguous_ = false;
        }
        if (at_ == n_chunks && tag_.empty())
            throw std::invalid_argument(name_ + ": expected at least one line, got an empty file");
        if (!contiguous_) return false;
        // A block's lists are small: copying them is over before another thread has woken.
        out = concatenate(places, false, 1);
        out.n_pooled = n_pooled;
        return true;
    }

    // The judged topics that the file did not hold; call after the last block.
    Joined missing() const {
        Lists lists;
        std::vector<uint8_t> found;
        for (int64_t t = 0; t < judged_.n_topics(); ++t)
            if (!seen_[t]) append_topic(judged_, t, {}, false, found, lists);
        std::vector<Place> places;
        for (const Lists::Topic& topic : lists.topics) places.push_back({&lists, &topic});
        return concatenate(places, false, 1);
    }

    bool contiguous() const { return contiguous_; }
    int64_t n_unjudged() const { return static_cast<int64_t>(others_.size()); }
    int64_t rank_conflicts() const { return rank_conflicts_; }
    const std::string& tag() const { return tag_; }

  private:
    const Judgements& judged_;
    std::string_view text_;
    std::string name_;
    std::vector<size_t> starts_;
    size_t block_bytes_;
    std::vector<bool> seen_;
    std::unordered_map<std::string_view, int> others_;
    std::vector<Lists> parts_;  // kept from block to block: their memory is used again
    size_t at_ = 0;
    int64_t rank_conflicts_ = 0;
    std::string tag_;
    bool contiguous_ = true;
};

// Joins the columns of a run: all judged topics in the order of the qrels. With keep_source the
// result says where each document came from. `n_missing` and `n_unjudged` count the topics that
// only the qrels and only the run hold.
inline Joined join_columns(const Judgements& judged, Strings topics, Strings docs,
                           const int64_t* offsets, const double* score, bool keep_source,
                           int n_threads, int64_t& n_missing, int64_t& n_unjudged) {
    std::vector<Lists> parts(topics.size);
    parallel_for(topics.size, docs.size * 20, n_threads, [&](int64_t q) {
        const int64_t t = judged.topic(topics[q]);
        if (t < 0) return;
        thread_local std::vector<Retrieved> rows;
        rows.clear();
        for (int64_t i = offsets[q]; i < offsets[q + 1]; ++i)
            rows.push_back({docs[i], hash_bytes(docs[i]), score[i], no_rank, i});
        join_topic(judged, t, topics[q], rows, keep_source, parts[q]);
    });
    const int64_t n = judged.n_topics();
    std::vector<Place> places(n, Place{nullptr, nullptr});
    int64_t n_pooled = 0;
    n_unjudged = 0;
    for (const Lists& part : parts) {
        n_pooled += part.n_pooled;
        n_unjudged += part.topics.empty();
        for (const Lists::Topic& topic : part.topics) places[topic.topic] = {&part, &topic};
    }
    Lists missing;
    std::vector<uint8_t> found;
    for (int64_t t = 0; t < n; ++t)
        if (places[t].lists == nullptr) append_topic(judged, t, {}, keep_source, found, missing);
    for (const Lists::Topic& topic : missing.topics) places[topic.topic] = {&missing, &topic};
    n_missing = static_cast<int64_t>(missing.topics.size());
    Joined out = concatenate(places, keep_source, n_threads);
    out.n_pooled = n_pooled;
    return out;
}

}  // namespace rankwise::trec
