// One row of LETOR / SVMlight text, and the places its values can go.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "text.hpp"

namespace rankwise {

constexpr int64_t max_feature_index = std::numeric_limits<int32_t>::max();

// The text " 17:" as eight bytes, to recognise the expected next index with one comparison.
struct IndexText {
    uint64_t text = ~uint64_t{0};
    uint64_t mask = ~uint64_t{0};
    int64_t length = 0;
};

// Texts of the first indices; entry 0 and the last one match nothing.
struct IndexTexts {
    static constexpr int64_t size = 2049;
    IndexText of[size];

    IndexTexts() {
        for (int64_t i = 1; i < size - 1; ++i) {
            const std::string text = " " + std::to_string(i) + ":";
            char bytes[8] = {}, mask[8] = {};
            std::memcpy(bytes, text.data(), text.size());
            std::memset(mask, 0xff, text.size());
            of[i] = {load_eight(bytes), load_eight(mask), static_cast<int64_t>(text.size())};
        }
    }

    static const IndexTexts& get() {
        static const IndexTexts texts;
        return texts;
    }
};

inline bool starts_with_qid(const char* p) { return std::memcmp(p, "qid:", 4) == 0; }

// The index of the last feature between begin and end, as far as it looks like one; 0 otherwise.
inline int64_t last_index(const char* begin, const char* end) {
    const char* p = end;
    while (p > begin && p[-1] != ':') --p;
    if (p == begin) return 0;
    int64_t value = 0, power = 1;
    for (--p; p > begin && p[-1] >= '0' && p[-1] <= '9'; --p) {
        if (power > max_feature_index) return 0;
        value += (p[-1] - '0') * power;
        power *= 10;
    }
    return value <= max_feature_index ? value : 0;
}

// The text of a comment that names the document: `docid = X ...` as LETOR writes it gives X,
// anything else the whole comment without the white space around it.
inline std::string_view document_id(const char* p, const char* end) {
    while (p < end && is_blank(*p)) ++p;
    while (end > p && is_blank(end[-1])) --end;
    if (end - p < 6 || std::memcmp(p, "docid", 5) != 0) return {p, static_cast<size_t>(end - p)};
    const char* q = p + 5;
    while (q < end && is_blank(*q)) ++q;
    if (q == end || *q != '=') return {p, static_cast<size_t>(end - p)};
    ++q;
    while (q < end && is_blank(*q)) ++q;
    const char* stop = q;
    while (stop < end && !is_blank(*stop)) ++stop;
    return {q, static_cast<size_t>(stop - q)};
}

// ---------------------------------------------------------------- where values go
//
// put(column, value) for each feature; absent(from, to) where columns are passed over.

template <class T>
struct DenseValues {
    static constexpr bool sparse = false, single = std::is_same_v<T, float>;
    T* row;
    int64_t width;
    T fill;

    // A column beyond the width cannot be valid: the row will fail.
    void put(int64_t column, double value) {
        if (column < width) row[column] = static_cast<T>(value);
    }
    void absent(int64_t from, int64_t to) {
        for (to = std::min(to, width); from < to; ++from) row[from] = fill;
    }
    void end_row() { row += width; }
};

template <class T>
struct SparseValues {
    static constexpr bool sparse = true, single = std::is_same_v<T, float>;
    T* values;
    int32_t* columns;
    int64_t stored = 0;

    void put(int64_t column, double value) {
        const T v = static_cast<T>(value);
        values[stored] = v;
        columns[stored] = static_cast<int32_t>(column);
        stored += v != T(0);
    }
    void absent(int64_t, int64_t) {}
    void end_row() {}
};

// Checks rows without keeping them.
template <class T>
struct NoValues {
    static constexpr bool sparse = false, single = std::is_same_v<T, float>;
    void put(int64_t, double) {}
    void absent(int64_t, int64_t) {}
    void end_row() {}
};

// ---------------------------------------------------------------- one row

struct LetorRow {
    double label;
    std::string_view qid;
};

struct LetorRowRules {
    bool has_qid;
    bool unjudged;
    int64_t n_features;  // the user's limit on indices, 0 without one
    int64_t width;       // columns there is room for
};

inline bool parse_label(const char*& p, bool unjudged, double& label, std::string& message) {
    const std::string_view token = token_at(p);
    const char* next;
    const Number kind = parse_number(p, next, label);
    if (kind == Number::missing || (kind == Number::finite && unjudged && label == -1)) {
        if (!unjudged) {
            message = "labels must not be missing, got " + quoted(token) +
                      "; say unjudged=\"ignore\" to keep unjudged documents";
            return false;
        }
        label = std::numeric_limits<double>::quiet_NaN();
    } else if (kind != Number::finite) {
        message = kind == Number::infinite
                      ? "labels must be finite, got " + quoted(token)
                      : "expected a relevance label (a number of at least 0), got " + quoted(token);
        return false;
    } else if (label < 0) {
        message = "labels must be at least 0, got " + quoted(token) +
                  (label == -1 ? "; say unjudged=\"ignore\" if -1 marks unjudged documents" : "");
        return false;
    }
    p = next;
    return true;
}

inline bool parse_qid(const char*& p, std::string_view& qid, std::string& message) {
    const std::string_view token = token_at(p);
    if (!starts_with_qid(p)) {
        message = token.empty() ? "expected qid:ID after the label, got the end of the line"
                                : "expected qid:ID after the label, got " + quoted(token);
        return false;
    }
    qid = token.substr(4);
    if (qid.empty()) {
        message = "expected a query id after 'qid:', got nothing";
        return false;
    }
    p = token.data() + token.size();
    return true;
}

// Reads "index:" at p when it is not the expected next one; p moves to the value.
inline bool parse_index(const char*& p, int64_t previous, int64_t& index, std::string& message) {
    const char* q = p + (*p == '-');
    const char* digits = q;
    int64_t value = 0;
    for (; *q >= '0' && *q <= '9'; ++q)
        value = value < max_feature_index ? value * 10 + (*q - '0') : value;
    if (q == digits || *q != ':') {
        message = starts_with_qid(p) ? "qid must come once, directly after the label, got "
                                     : "expected feature:value, got ";
        message += quoted(token_at(p));
        return false;
    }
    if (*p == '-' || value == 0) {
        message = "feature indices count from 1, got " + quoted(token_at(p));
        return false;
    }
    if (value > max_feature_index) {
        message = "feature indices must be at most 2147483647, got " + quoted(token_at(p));
        return false;
    }
    if (value <= previous) {
        message = value == previous
                      ? "feature " + std::to_string(value) + " is given twice in the row"
                      : "feature indices must ascend, got " + quoted(token_at(p)) + " after " +
                            std::to_string(previous);
        return false;
    }
    index = value;
    p = q + 1;
    return true;
}

// Reads the value of a feature in any form; a missing one becomes NaN.
inline bool parse_value(const char* p, const char*& next, int64_t index, bool single, double& value,
                        std::string& message) {
    const Number kind = parse_number(p, next, value);
    if (kind == Number::missing) value = std::numeric_limits<double>::quiet_NaN();
    // From the middle between the largest float and 2^128 on, rounding to float32 gives infinity.
    const bool overflow = single && std::fabs(value) >= 0x1.ffffffp127;
    if (kind == Number::missing || (kind == Number::finite && !overflow)) return true;
    const std::string feature = "feature " + std::to_string(index);
    const std::string token = quoted(token_at(p));
    if (kind == Number::infinite)
        message = feature + " must be finite, got " + token;
    else if (kind == Number::finite)
        message = feature + " does not fit float32, got " + token + "; read it as float64";
    else
        message = "expected a number for " + feature + ", got " + token;
    return false;
}

// Parses the row at p into `row` and `values`; returns the '\n' or '#' it ends at, or nullptr with
// `message` set.
template <class Values>
const char* parse_letor_row(const char* p, const LetorRowRules& rules, Values& values,
                            LetorRow& row, std::string& message) {
    if (!parse_label(p, rules.unjudged, row.label, message)) return nullptr;
    p = skip_blanks(p);
    if (rules.has_qid && !parse_qid(p, row.qid, message)) return nullptr;
    if (!rules.has_qid) --p;  // back to the blank that the texts of indices begin with
    const IndexText* texts = IndexTexts::get().of;
    const IndexText* expected = texts + 1;
    int64_t previous = 0;
    for (;; ++previous, ++expected) {
        if (((load_eight(p) ^ expected->text) & expected->mask) == 0) {
            p += expected->length;
        } else {
            const char* at;
            int64_t index;
            const DigitRun run = digit_run(p + 1);
            if (*p == ' ' && run.n - 1 < 7 && p[1 + run.n] == ':' &&
                static_cast<int64_t>(run.value) > previous) {
                index = static_cast<int64_t>(run.value);
                at = p + run.n + 2;
            } else {
                at = skip_blanks(p);
                if (*at == '\n' || *at == '#') break;
                if (!parse_index(at, previous, index, message)) return nullptr;
            }
            values.absent(previous, index - 1);
            previous = index - 1;
            expected = texts + std::min(index, IndexTexts::size - 2);  // stepped below
            p = at;
        }
        double value;
        const char* next;
        if (!parse_short_number(p, next, value)) {
            double other;
            const char* end;
            if (!parse_value(p, end, previous + 1, Values::single, other, message)) return nullptr;
            value = other;
            next = end;
        }
        values.put(previous, value);
        p = next;
    }
    if (previous > rules.width) {
        message = "expected feature indices of at most " +
                  std::to_string(rules.n_features > 0 ? rules.n_features : rules.width) +
                  " (n_features), got " + std::to_string(previous);
        return nullptr;
    }
    values.absent(previous, rules.width);
    return skip_blanks(p);
}

}  // namespace rankwise
