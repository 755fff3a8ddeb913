// Numbers, tokens and line-aligned pieces of text: what the readers of LETOR and TREC files share.
//
// Every piece ends in '\n' and has `text_padding` readable bytes behind it, so the loops need no
// end-of-buffer tests: the line end stops them, and eight bytes can be loaded at once anywhere.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#ifdef __SSSE3__
#include <tmmintrin.h>
#endif

namespace rankwise {

constexpr size_t text_padding = 64;

// ---------------------------------------------------------------- tokens

inline bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

// What ends a token: white space, a line end, or the start of a comment.
struct DelimiterTable {
    bool is[256] = {};
    constexpr DelimiterTable() {
        for (char c : {' ', '\t', '\r', '\v', '\f', '\n', '#'})
            is[static_cast<unsigned char>(c)] = true;
    }
};
inline constexpr DelimiterTable delimiters{};

inline bool is_delimiter(char c) { return delimiters.is[static_cast<unsigned char>(c)]; }

inline const char* skip_blanks(const char* p) {
    while (is_blank(*p)) ++p;
    return p;
}

inline const char* token_end(const char* p) {
    while (!is_delimiter(*p)) ++p;
    return p;
}

inline std::string_view token_at(const char* p) {
    return {p, static_cast<size_t>(token_end(p) - p)};
}

// A token as an error message shows it: in quotes, at most 40 bytes, anything but printable ASCII
// as \xNN so that the message is always valid text.
inline std::string quoted(std::string_view token) {
    static const char* hex = "0123456789abcdef";
    std::string out = "'";
    for (unsigned char c : token.substr(0, 40)) {
        if (c >= 0x20 && c < 0x7f) {
            out += static_cast<char>(c);
        } else {
            out += {'\\', 'x', hex[c >> 4], hex[c & 15]};
        }
    }
    return out + (token.size() > 40 ? "...'" : "'");
}

// ---------------------------------------------------------------- numbers

inline uint64_t load_eight(const char* p) {
    uint64_t w;
    std::memcpy(&w, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w;
}

// Up to eight leading decimal digits of eight bytes: their number and their value. XOR turns
// digits into 0..9; a byte above 9 gets its top bit set by the addition, and the carries of larger
// bytes only reach bytes behind the first non-digit, which no longer matter.
struct DigitRun {
    unsigned n;
    uint64_t value;
};

// The value of the first n of eight digits, given as 0..9 and garbage behind, n in 0..8. They are
// moved behind zeros (half the shift at a time: 64 at once is undefined), then added up as pairs,
// fours and eights.
inline uint64_t first_digits(uint64_t t, unsigned n) {
    const unsigned half = 4 * (8 - n);
    t = t << half << half;
    t = t * 10 + (t >> 8);
    const uint64_t pairs = 0x000000FF000000FFULL;
    t = (t & pairs) * 0x000F424000000064ULL + ((t >> 16) & pairs) * 0x0000271000000001ULL;
    return t >> 32;
}

inline DigitRun digit_run(const char* p) {
    const uint64_t t = load_eight(p) ^ 0x3030303030303030ULL;
    const uint64_t stop = ((t + 0x7676767676767676ULL) | t) & 0x8080808080808080ULL;
    const unsigned n = stop == 0 ? 8 : static_cast<unsigned>(__builtin_ctzll(stop)) >> 3;
    return {n, first_digits(t, n)};
}

inline constexpr double exact_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
inline constexpr uint64_t integer_powers[] = {1,      10,      100,      1000,     10000,
                                              100000, 1000000, 10000000, 100000000};

enum class Number : unsigned char { finite, missing, infinite, invalid };

// Lower-cases ASCII letters only; enough to compare with the few words that stand for numbers.
inline bool equals_word(std::string_view token, std::string_view word) {
    if (token.size() != word.size()) return false;
    for (size_t i = 0; i < word.size(); ++i)
        if ((token[i] | 0x20) != word[i]) return false;
    return true;
}

// Whether a decimal number too large or too small for a double is too large. `text` is known to be
// a well-formed number; the decimal exponent of its first non-zero digit decides.
inline bool overflows(std::string_view text) {
    long long position = 0, exponent = 0;
    bool dot = false, seen = false;
    size_t i = 0;
    for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
        if (text[i] == '.') {
            dot = true;
        } else if (text[i] >= '0' && text[i] <= '9') {
            seen = seen || text[i] != '0';
            if (seen && !dot) ++position;
            if (!seen && dot) --position;
        }
    }
    if (i < text.size()) {
        const bool negative = text[++i] == '-';
        i += text[i] == '-' || text[i] == '+';
        for (; i < text.size() && exponent < 1'000'000'000'000LL; ++i)
            exponent = exponent * 10 + (text[i] - '0');
        if (negative) exponent = -exponent;
    }
    return position + exponent > 0;
}

// Any token that the fast path does not settle: long mantissas, exponents, words.
#if defined(__GNUC__)
__attribute__((noinline))
#endif
inline Number parse_number_slow(const char* p, const char*& next, double& value) {
    const char* end = token_end(p);
    next = end;
    const bool plus = *p == '+', minus = *p == '-';
    std::string_view body(p + (plus || minus), static_cast<size_t>(end - p) - (plus || minus));
    if (body.empty()) return Number::invalid;
    const char first = body[0];
    if (!((first >= '0' && first <= '9') || first == '.')) {
        for (std::string_view word : {"nan", "null", "na"})
            if (equals_word(body, word)) return Number::missing;
        for (std::string_view word : {"inf", "infinity"})
            if (equals_word(body, word)) return Number::infinite;
        return Number::invalid;
    }
    double magnitude = 0;
    const auto [stop, error] = std::from_chars(body.data(), end, magnitude);
    if (error == std::errc::invalid_argument || stop != end) return Number::invalid;
    if (error == std::errc::result_out_of_range) {
        if (overflows(body)) return Number::infinite;
        magnitude = 0;
    }
    if (magnitude > std::numeric_limits<double>::max()) return Number::infinite;
    value = minus ? -magnitude : magnitude;
    return Number::finite;
}

// The number at p, bit-equal to Python's float() of the token: an integer mantissa of at most 53
// bits over a power of ten up to 1e22 is one correctly rounded division (Clinger 1990); all else
// goes to std::from_chars. `next` is the end of the token.
inline Number parse_number(const char* p, const char*& next, double& value) {
    const bool negative = *p == '-';
    const char* q = p + negative;
    const DigitRun whole = digit_run(q);
    q += whole.n;
    uint64_t mantissa = whole.value;
    unsigned scale = 0, digits = whole.n;
    if (*q == '.') {
        const DigitRun part = digit_run(++q);
        q += part.n;
        mantissa = mantissa * integer_powers[part.n] + part.value;
        scale = part.n;
        digits += part.n;
        if (part.n == 8) {
            const DigitRun more = digit_run(q);
            q += more.n;
            mantissa = mantissa * integer_powers[more.n] + more.value;
            scale += more.n;
            digits += more.n;
        }
    } else if (whole.n == 8) {
        const DigitRun more = digit_run(q);
        q += more.n;
        mantissa = mantissa * integer_powers[more.n] + more.value;
        digits += more.n;
    }
    // Up to 19 digits the mantissa has not wrapped.
    if (digits - 1 < 19 && mantissa <= (uint64_t{1} << 53) && is_delimiter(*q)) {
        const double magnitude =
            static_cast<double>(static_cast<int64_t>(mantissa)) / exact_powers[scale];
        value = negative ? -magnitude : magnitude;
        next = q;
        return Number::finite;
    }
    return parse_number_slow(p, next, value);
}

#ifdef __SSSE3__
// Byte tables for parse_short_number, whose argument is the length of the number, or what its
// point and fraction take of it.
struct ShuffleTables {
    signed char right[32];  // from [length]: a shuffle that moves `length` bytes to the end
    signed char over_point[17]
                          [16];  // added to it: bytes before the fraction come from one place left
    double scale[17];

    constexpr ShuffleTables() : right(), over_point(), scale() {
        for (int i = 0; i < 32; ++i) right[i] = static_cast<signed char>(i < 16 ? -64 : i - 16);
        double power = 1;
        for (int tail = 0; tail < 17; ++tail) {
            for (int i = 0; i < 16; ++i)
                over_point[tail][i] = static_cast<signed char>(tail > 0 && i < 17 - tail ? -1 : 0);
            scale[tail] = power;
            if (tail > 0) power *= 10;
        }
    }
};
alignas(64) inline constexpr ShuffleTables shuffle_tables{};
#endif

// The common case of parse_number without a branch on the form of the number, which would be
// guessed wrong too often: at most 15 characters of digits with perhaps a sign and a point. False
// when it is not of this form. A control character may follow unnoticed: the caller finds it next.
inline bool parse_short_number(const char* p, const char*& next, double& value) {
#ifdef __SSSE3__
    const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i zeroed = _mm_xor_si128(text, _mm_set1_epi8('0'));  // digits are now 0..9
    const __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(zeroed, _mm_set1_epi8(9)), zeroed);
    const unsigned digits = static_cast<unsigned>(_mm_movemask_epi8(is_digit));
    const unsigned dots =
        static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8('.'))));
    const unsigned negative = *p == '-';
    // Bits 16 and up of the complement are set: an end is always found.
    const unsigned length = static_cast<unsigned>(__builtin_ctz(~(digits | dots | negative)));
    const unsigned end_bit = 1u << length;
    // Length of the point and the fraction behind it, 0 without a point.
    const unsigned tail = length - static_cast<unsigned>(__builtin_ctz(dots | end_bit));
    const unsigned points = dots & (end_bit - 1);
    if (length > 15 || (points & (points - 1)) != 0 || (digits & (end_bit - 1)) == 0 ||
        static_cast<unsigned char>(p[length]) > ' ')
        return false;
    // Right-align the digits without the point (signs are cleared), then add up pairs, fours,
    // eights.
    const auto load = [](const signed char* bytes) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
    };
    const __m128i shuffle =
        _mm_add_epi8(load(shuffle_tables.right + length), load(shuffle_tables.over_point[tail]));
    const __m128i ones = _mm_shuffle_epi8(_mm_and_si128(zeroed, is_digit), shuffle);
    const __m128i pairs = _mm_maddubs_epi16(ones, _mm_set1_epi16(0x010A));
    const __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(0x00010064));
    const __m128i eights =
        _mm_madd_epi16(_mm_packs_epi32(fours, fours), _mm_set1_epi32(0x00012710));
    const uint64_t halves = static_cast<uint64_t>(_mm_cvtsi128_si64(eights));
    const uint64_t mantissa = (halves & 0xFFFFFFFFULL) * 100000000 + (halves >> 32);
    const double magnitude =
        static_cast<double>(static_cast<int64_t>(mantissa)) / shuffle_tables.scale[tail];
    const __m128d sign = _mm_castsi128_pd(
        _mm_cvtsi64_si128(static_cast<int64_t>(static_cast<uint64_t>(negative) << 63)));
    value = _mm_cvtsd_f64(_mm_xor_pd(_mm_set_sd(magnitude), sign));
    next = p + length;
    return true;
#else
    (void)p, (void)next, (void)value;
    return false;
#endif
}

// A token that is an integer in its shortest form ("7", "-12", not "007" or "+7"), so that the
// integer prints as the token did.
inline bool parse_integer(std::string_view token, int64_t& value) {
    const auto [stop, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error != std::errc() || stop != token.data() + token.size()) return false;
    const bool minus = token[0] == '-';
    return token[minus] != '0' || (token.size() == 1 && !minus);
}

// ---------------------------------------------------------------- UTF-8

// Length of the well-formed UTF-8 sequence at p and its code point; 0 when it is not well formed.
inline int utf8_at(const char* p, const char* end, uint32_t& code) {
    const auto byte = [p](int i) { return static_cast<unsigned char>(p[i]); };
    const uint32_t first = byte(0);
    if (first < 0x80) {
        code = first;
        return 1;
    }
    const int n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || end - p < n) return 0;
    code = first & (0x7f >> n);
    for (int i = 1; i < n; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
        code = code << 6 | (byte(i) & 0x3f);
    }
    // Overlong forms, surrogates, beyond Unicode.
    if ((n == 3 && code < 0x800) || (n == 4 && code < 0x10000)) return 0;
    if ((code >= 0xd800 && code < 0xe000) || code > 0x10ffff) return 0;
    return n;
}

// Writes the code points of a text, zeros behind; a byte that is not UTF-8 becomes U+FFFD.
inline void decode_utf8(std::string_view text, uint32_t* out, size_t width) {
    const char* end = text.data() + text.size();
    size_t n = 0;
    for (const char* p = text.data(); p < end && n < width; ++n) {
        const int length = utf8_at(p, end, out[n]);
        if (length == 0) out[n] = 0xfffd;
        p += length == 0 ? 1 : length;
    }
    for (; n < width; ++n) out[n] = 0;
}

inline size_t code_points(std::string_view text) {
    const char* end = text.data() + text.size();
    size_t n = 0;
    for (const char* p = text.data(); p < end; ++n) {
        uint32_t code;
        const int length = utf8_at(p, end, code);
        p += length == 0 ? 1 : length;
    }
    return n;
}

// ---------------------------------------------------------------- pieces

struct Piece {
    const char* begin;
    const char* end;  // behind a '\n'
};

// Whole lines of a block of text, cut into pieces of about `target` bytes. What follows the last
// '\n' is left for the next block unless the block is the last one. The last piece is copied when
// it lacks its line end or the padding behind it.
class Pieces {
  public:
    Pieces(const char* data, size_t size, size_t readable, bool last, size_t target) {
        const char* end = data + size;
        const char* cut = end;
        while (cut > data && cut[-1] != '\n') --cut;
        // Everything up to `safe` may be read in place: there is padding behind it.
        const char* safe = cut;
        if (static_cast<size_t>(data + readable - cut) < text_padding) {
            const size_t lack = text_padding - static_cast<size_t>(data + readable - cut);
            safe = static_cast<size_t>(cut - data) > lack ? cut - lack : data;
            while (safe > data && safe[-1] != '\n') --safe;
        }
        for (const char* p = data; p < safe;) {
            const char* q = safe;
            if (static_cast<size_t>(safe - p) > target + target / 2) {
                q = static_cast<const char*>(std::memchr(p + target, '\n', safe - (p + target)));
                q = q == nullptr ? safe : q + 1;
            }
            pieces_.push_back({p, q});
            p = q;
        }
        const char* rest = last ? end : cut;
        if (rest > safe) {
            tail_.assign(safe, rest);
            if (tail_.back() != '\n') tail_ += '\n';
            const size_t length = tail_.size();
            tail_.append(text_padding, '\0');
            pieces_.push_back({tail_.data(), tail_.data() + length});
        }
        consumed_ = static_cast<size_t>(rest - data);
    }
    Pieces(const Pieces&) = delete;
    Pieces& operator=(const Pieces&) = delete;

    size_t size() const { return pieces_.size(); }
    const Piece& operator[](size_t i) const { return pieces_[i]; }
    size_t consumed() const { return consumed_; }

  private:
    std::vector<Piece> pieces_;
    std::string tail_;
    size_t consumed_ = 0;
};

}  // namespace rankwise
