// Lines of TREC run and qrels files: fields, numbers, and where a bad line is.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "text.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace rankwise::trec {

// A line that cannot be read. `pos` is the byte where the line starts; line numbers are counted
// from it only when an error is reported, so that the reading loop carries no counter.
struct Failure {
    size_t pos;
    std::string message;
};

constexpr int64_t no_rank = std::numeric_limits<int64_t>::min();

// One line of a run (extra: the tag) or of qrels (extra: the iteration or subtopic; value: label).
struct Row {
    std::string_view qid, doc, extra;
    double value = 0;
    int64_t rank = no_rank;
};

enum class Kind { run, qrels };

// A field of a line. Unlike a string_view it starts uninitialised, which matters here.
struct Field {
    const char* data;
    size_t size;

    operator std::string_view() const { return {data, size}; }
};

// What isspace() accepts in the C locale. Other control characters are not part of any field:
// they mean that the file is not text.
inline bool is_space(unsigned char c) { return c == ' ' || static_cast<unsigned>(c - 9) <= 4; }
inline bool is_control(unsigned char c) { return c < 32 && !is_space(c); }

// One bit per byte of p[0..63]: white space and line ends; and whether there are other control
// characters anywhere among the bytes.
struct Masks {
    uint64_t space = 0, newline = 0;
    bool control = false;
};

inline Masks masks64(const char* p) {
    Masks m;
#ifdef __SSE2__
    const __m128i blank = _mm_set1_epi8(' '), nine = _mm_set1_epi8(9), four = _mm_set1_epi8(4);
    const __m128i line = _mm_set1_epi8('\n'), low = _mm_set1_epi8(31);
    __m128i control = _mm_setzero_si128();
    for (int i = 0; i < 4; ++i) {
        const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * i));
        const __m128i shifted = _mm_sub_epi8(v, nine);
        const __m128i space = _mm_or_si128(_mm_cmpeq_epi8(v, blank),
                                           _mm_cmpeq_epi8(_mm_min_epu8(shifted, four), shifted));
        const __m128i below = _mm_cmpeq_epi8(_mm_min_epu8(v, low), v);
        const auto bits = [i](__m128i x) {
            return static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(x))) << (16 * i);
        };
        m.space |= bits(space);
        m.newline |= bits(_mm_cmpeq_epi8(v, line));
        control = _mm_or_si128(control, _mm_andnot_si128(space, below));
    }
    m.control = _mm_movemask_epi8(control) != 0;
#else
    for (int i = 0; i < 64; ++i) {
        const auto c = static_cast<unsigned char>(p[i]);
        const uint64_t bit = uint64_t{1} << i;
        if (is_space(c)) m.space |= bit;
        if (c == '\n') m.newline |= bit;
        m.control = m.control || is_control(c);
    }
#endif
    return m;
}

inline int lowest_bit(uint64_t x) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_ctzll(x);
#else
    int i = 0;
    while (!(x & 1)) x >>= 1, ++i;
    return i;
#endif
}

[[noreturn]] inline void bad_byte(const char* start, const char* line, char byte) {
    static const char* hex = "0123456789abcdef";
    const auto c = static_cast<unsigned char>(byte);
    throw Failure{static_cast<size_t>(line - start), std::string("expected text, got the byte 0x") +
                                                         hex[c >> 4] + hex[c & 15] +
                                                         "; is the file compressed or binary?"};
}

// Splits the line at `p` into fields and moves `p` behind it, byte by byte. Returns how many fields
// there are; the first `limit` of them are stored.
inline int split_slowly(const char* start, const char*& p, const char* end, Field* field,
                        int limit) {
    const char* const line = p;
    int n = 0;
    while (true) {
        while (p < end && *p != '\n' && is_space(static_cast<unsigned char>(*p))) ++p;
        if (p == end || *p == '\n') break;
        const char* const begin = p;
        while (p < end && !is_space(static_cast<unsigned char>(*p))) {
            if (is_control(static_cast<unsigned char>(*p))) bad_byte(start, line, *p);
            ++p;
        }
        if (n < limit) field[n] = {begin, static_cast<size_t>(p - begin)};
        ++n;
    }
    if (p < end) ++p;
    return n;
}

// The same for a line that ends within 64 bytes, as nearly all do: fields are read off a mask.
inline int split_line(const char* start, const char*& p, const char* end, Field* field, int limit) {
    if (end - p < 64) return split_slowly(start, p, end, field, limit);
    const Masks m = masks64(p);
    if (m.newline == 0 || m.control) return split_slowly(start, p, end, field, limit);
    const int stop = lowest_bit(m.newline);
    const uint64_t text = ~m.space & ((uint64_t{1} << stop) - 1);
    uint64_t begins = text & ~(text << 1), ends = ~text & (text << 1);
    int n = 0;
    for (; begins != 0 && n < limit; ++n) {
        const int b = lowest_bit(begins);
        field[n] = {p + b, static_cast<size_t>(lowest_bit(ends) - b)};
        begins &= begins - 1;
        ends &= ends - 1;
    }
    for (; begins != 0; begins &= begins - 1) ++n;
    p += stop + 1;
    return n;
}

// A decimal number, bit-equal to Python's float(); false for anything else, infinite values and
// words included. The parser wants readable bytes behind the token, which the last line may lack.
inline bool parse_finite(std::string_view token, const char* end, double& value) {
    const char* next = nullptr;
    if (static_cast<size_t>(end - token.data()) >= token.size() + text_padding)
        return parse_number(token.data(), next, value) == Number::finite &&
               next == token.data() + token.size();
    std::string padded(token);
    padded.append(text_padding, '\n');
    return parse_number(padded.data(), next, value) == Number::finite &&
           next == padded.data() + token.size();
}

// The rank field: an integer, or no_rank where it is something else (it is never needed).
inline int64_t parse_rank(std::string_view text) {
    const bool negative = text.size() > 1 && text[0] == '-';
    const std::string_view digits = text.substr(negative ? 1 : 0);
    if (digits.empty() || digits.size() > 18) return no_rank;
    int64_t value = 0;
    for (const char c : digits) {
        if (c < '0' || c > '9') return no_rank;
        value = value * 10 + (c - '0');
    }
    return negative ? -value : value;
}

[[noreturn]] inline void bad_fields(Kind kind, size_t pos, int n) {
    const char* expected = kind == Kind::run ? "expected 6 fields (qid Q0 doc rank score tag), got "
                                             : "expected 4 fields (qid iteration doc label), got ";
    throw Failure{pos, expected + std::to_string(n)};
}

[[noreturn]] inline void bad_number(Kind kind, size_t pos, std::string_view text) {
    const char* name = kind == Kind::run ? "score" : "label";
    throw Failure{pos, std::string(name) + " must be a finite number, got " + quoted(text)};
}

// Reads the next line that holds a row; false at the end of the text. Blank lines and lines that
// start with # are passed over. A run's fields after the tag are ignored, as trec_eval does.
inline bool next_row(Kind kind, const char* start, const char*& p, const char* end, Row& row) {
    Field field[6];
    while (p < end) {
        const auto pos = static_cast<size_t>(p - start);
        const int n = split_line(start, p, end, field, 6);
        if (n == 0 || *field[0].data == '#') continue;
        std::string_view number;
        if (kind == Kind::run) {
            if (n < 6) bad_fields(kind, pos, n);
            row.rank = parse_rank(field[3]);
            row.extra = field[5];
            number = field[4];
        } else {
            if (n != 4) bad_fields(kind, pos, n);
            row.extra = field[1];
            number = field[3];
        }
        row.qid = field[0];
        row.doc = field[2];
        if (!parse_finite(number, end, row.value)) bad_number(kind, pos, number);
        return true;
    }
    return false;
}

// Number of the line that holds byte `pos`, from 1.
inline size_t line_number(const char* text, size_t pos) {
    size_t line = 1;
    for (const char *p = text, *end = text + pos; p < end; ++p) line += *p == '\n';
    return line;
}

}  // namespace rankwise::trec
