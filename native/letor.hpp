// Reader of LETOR / SVMlight text: `label qid:ID index:value ... # comment`, one document a line.
//
// Text comes in blocks. Each block is cut into pieces at line ends; a first pass counts rows and
// finds the largest feature index, then the arrays grow and a second pass parses every piece
// straight into its final place, in parallel over pieces. The first bad line in file order is
// reported, whatever the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "growing.hpp"
#include "letor_row.hpp"
#include "parallel.hpp"
#include "text.hpp"

namespace rankwise {

struct LetorOptions {
    bool sparse = false;
    bool absent_nan = false;    // absent features are NaN instead of 0 (dense only)
    bool unjudged = false;      // labels NaN and -1 are kept, as NaN
    bool keep_docs = true;      // comments become document ids
    bool qid_optional = false;  // rows without qid are allowed (sizes come from elsewhere)
    int64_t n_features = 0;     // 0: as many as the largest index
    uint64_t dense_limit = uint64_t{1} << 30;  // bytes a dense matrix may always take
    uint64_t total_text = 0;                   // bytes of the whole text, 0 when unknown
    int n_threads = 0;
};

struct LetorFailure {
    int64_t line;
    std::string message;
};

// What the counting pass learns about one piece.
struct LetorCount {
    int64_t lines = 0;
    int64_t rows = 0;
    int64_t room = 0;       // an upper bound on its values: each takes four bytes, as in " 1:2"
    int64_t max_index = 0;  // of the last feature of each row; ascending rows have no larger one
};

// What the parsing pass finds in one piece apart from the values.
struct LetorFound {
    std::vector<int64_t> run_rows;  // rows at which another qid begins
    std::vector<std::string_view> run_ids;
    std::string doc_text;
    std::vector<int64_t> doc_ends;  // per row, into doc_text; empty without comments
    int64_t stored = 0;             // values kept (sparse)
    int64_t bad_line = -1;          // line of the piece, counted from 0
    std::string message;
};

inline LetorCount count_letor(Piece piece) {
    LetorCount count;
    count.room = (piece.end - piece.begin) / 4 + 1;
    for (const char* p = piece.begin; p < piece.end;) {
        const char* stop = static_cast<const char*>(std::memchr(p, '\n', piece.end - p));
        const char* first = skip_blanks(p);
        ++count.lines;
        if (first < stop && *first != '#') {
            ++count.rows;
            const void* comment = std::memchr(first, '#', stop - first);
            const char* end = comment ? static_cast<const char*>(comment) : stop;
            count.max_index = std::max(count.max_index, last_index(first, end));
        }
        p = stop + 1;
    }
    return count;
}

template <class T>
class LetorReader {
  public:
    explicit LetorReader(const LetorOptions& options) : options_(options) {
        if (options.sparse) starts_.push_back(0);
        width_ = options.n_features;
    }

    // Parses the whole lines of a block and returns how many bytes it used; what is left must come
    // again at the start of the next block. `readable` bytes may be read, of which `size` count.
    // Throws LetorFailure.
    size_t feed(const char* data, size_t size, size_t readable, bool last) {
        if (line_ == 0 && text_ == 0 && size >= 3 && std::memcmp(data, "\xEF\xBB\xBF", 3) == 0)
            return 3 + feed_lines(data + 3, size - 3, readable - 3, last);  // byte order mark
        return feed_lines(data, size, readable, last);
    }

    int64_t n_rows() const { return static_cast<int64_t>(labels_.size()); }
    int64_t n_features() const { return width_; }
    int64_t n_lines() const { return line_; }
    bool has_qid() const { return has_qid_; }
    bool integer_ids() const { return integer_ids_; }
    bool has_docs() const { return doc_ends_.size() > 0; }

    Growing<T>& values() { return values_; }
    Growing<int32_t>& columns() { return columns_; }
    Growing<int64_t>& starts() { return starts_; }
    Growing<double>& labels() { return labels_; }
    const std::vector<int64_t>& run_rows() const { return run_rows_; }
    std::string_view run_id(size_t i) const {
        const size_t begin = i == 0 ? 0 : run_id_ends_[i - 1];
        return std::string_view(run_text_).substr(begin, run_id_ends_[i] - begin);
    }
    std::string_view doc(size_t row) const {
        const size_t begin = row == 0 ? 0 : static_cast<size_t>(doc_ends_[row - 1]);
        return std::string_view(doc_text_).substr(begin, doc_ends_[row] - begin);
    }

  private:
    static constexpr size_t piece_size = size_t{1} << 17;

    size_t feed_lines(const char* data, size_t size, size_t readable, bool last) {
        const Pieces pieces(data, size, readable, last, piece_size);
        const int64_t n = static_cast<int64_t>(pieces.size());
        const int64_t work = static_cast<int64_t>(size);
        text_ += pieces.consumed();
        std::vector<LetorCount> counts(n);
        parallel_for(n, work, options_.n_threads,
                     [&](int64_t i) { counts[i] = count_letor(pieces[i]); });
        decide_qid(pieces);
        std::vector<LetorFound> found(n);
        const bool fits = grow(counts);
        // Row, value and line at which each piece begins.
        std::vector<int64_t> row(n + 1, row_), slot(n + 1, stored_), line(n + 1, line_);
        for (int64_t i = 0; i < n; ++i) {
            row[i + 1] = row[i] + counts[i].rows;
            slot[i + 1] = slot[i] + counts[i].room;
            line[i + 1] = line[i] + counts[i].lines;
        }
        parallel_for(n, work, options_.n_threads, [&](int64_t i) {
            if (!fits) {
                parse_piece(pieces[i], row[i], NoValues<T>{}, found[i]);
            } else if (options_.sparse) {
                parse_piece(pieces[i], row[i],
                            SparseValues<T>{values_.data() + slot[i], columns_.data() + slot[i]},
                            found[i]);
            } else {
                const T absent = options_.absent_nan ? std::numeric_limits<T>::quiet_NaN() : T(0);
                parse_piece(pieces[i], row[i],
                            DenseValues<T>{values_.data() + row[i] * width_, width_, absent},
                            found[i]);
            }
        });
        report(found, line, pieces, fits);
        for (int64_t i = 0; i < n; ++i) append(found[i], row[i], counts[i].rows, slot[i]);
        if (options_.sparse) {
            values_.resize(stored_);
            columns_.resize(stored_);
            density_ = static_cast<double>(stored_) / std::max<uint64_t>(text_, 1);
        }
        row_ = row[n];
        line_ = line[n];
        return pieces.consumed();
    }

    // The first row says whether the file has query ids; all others must agree.
    void decide_qid(const Pieces& pieces) {
        for (size_t i = 0; !decided_ && i < pieces.size(); ++i) {
            for (const char* p = pieces[i].begin; !decided_ && p < pieces[i].end;) {
                p = skip_blanks(p);
                if (*p != '\n' && *p != '#') {
                    decided_ = true;
                    p = skip_blanks(token_end(p));
                    has_qid_ = !options_.qid_optional || starts_with_qid(p);
                }
                while (*p != '\n') ++p;
                ++p;
            }
        }
    }

    // Makes room for the rows of the block; false when a dense matrix would be absurdly large.
    bool grow(const std::vector<LetorCount>& counts) {
        int64_t rows = row_, room = stored_, widest = 0;
        for (const LetorCount& c : counts) {
            rows += c.rows;
            room += c.room;
            widest = std::max(widest, c.max_index);
        }
        // Room for the whole text at the density so far; what is not used is never touched.
        const double share =
            static_cast<double>(options_.total_text) / std::max<uint64_t>(text_, 1);
        const double ahead = std::max(1.0, 1.03 * share);
        if (options_.sparse) {
            if (options_.n_features == 0) width_ = std::max(width_, widest);
            const double expected =
                1.03 * density_ * static_cast<double>(options_.total_text) + (room - stored_);
            values_.resize(room, expected);
            columns_.resize(room, expected);
            starts_.resize(rows + 1, ahead * rows + 1);
        } else if (options_.n_features == 0 && widest > width_) {
            if (too_large(rows, widest)) return false;
            widen(widest);
        }
        // More rows of an accepted width are in proportion to the text, unless one long row set
        // the width for many short ones.
        if (!options_.sparse) {
            if (options_.n_features == 0 && too_large(rows, width_)) return false;
            const size_t cells = static_cast<size_t>(rows) * static_cast<size_t>(width_);
            values_.resize(cells, ahead * cells);
        }
        labels_.resize(rows, ahead * rows);
        return true;
    }

    bool too_large(int64_t rows, int64_t width) const {
        const double bytes = static_cast<double>(rows) * static_cast<double>(width) * sizeof(T);
        return bytes > std::max(static_cast<double>(options_.dense_limit), 32.0 * text_);
    }

    // Spreads the rows read so far over a larger width, from the last to the first.
    void widen(int64_t width) {
        const T absent = options_.absent_nan ? std::numeric_limits<T>::quiet_NaN() : T(0);
        values_.resize(static_cast<size_t>(row_) * static_cast<size_t>(width));
        for (int64_t i = row_ - 1; i >= 0; --i) {
            T* to = values_.data() + i * width;
            if (width_ > 0) std::memmove(to, values_.data() + i * width_, width_ * sizeof(T));
            std::fill(to + width_, to + width, absent);
        }
        width_ = width;
    }

    template <class Values>
    void parse_piece(Piece piece, int64_t row, Values values, LetorFound& found) {
        const LetorRowRules rules{has_qid_, options_.unjudged, options_.n_features,
                                  std::is_same_v<Values, NoValues<T>> ? INT64_MAX : width_};
        LetorRow parsed;
        std::string_view previous;
        const int64_t first_row = row;
        int64_t line = 0;
        for (const char* p = piece.begin; p < piece.end; ++line) {
            p = skip_blanks(p);
            if (*p == '\n' || *p == '#') {
                p = static_cast<const char*>(std::memchr(p, '\n', piece.end - p)) + 1;
                continue;
            }
            p = parse_letor_row(p, rules, values, parsed, found.message);
            if (p == nullptr) {
                found.bad_line = line;
                return;
            }
            values.end_row();
            if constexpr (!std::is_same_v<Values, NoValues<T>>) {
                labels_[row] = parsed.label;
                if constexpr (Values::sparse) starts_[row + 1] = values.stored;
            }
            if (has_qid_ && (row == first_row || parsed.qid != previous)) {
                found.run_rows.push_back(row);
                found.run_ids.push_back(parsed.qid);
                previous = parsed.qid;
            }
            ++row;
            if (*p == '#') {
                const char* stop = static_cast<const char*>(std::memchr(p, '\n', piece.end - p));
                if (options_.keep_docs) {
                    const std::string_view doc = document_id(p + 1, stop);
                    if (!doc.empty()) {
                        found.doc_ends.resize(row - first_row - 1,
                                              static_cast<int64_t>(found.doc_text.size()));
                        found.doc_text.append(doc);
                        found.doc_ends.push_back(static_cast<int64_t>(found.doc_text.size()));
                    }
                }
                p = stop;
            }
            ++p;
        }
        if constexpr (Values::sparse) found.stored = values.stored;
    }

    // Throws the failure of the first bad line, or the refusal of a matrix that is too large.
    void report(const std::vector<LetorFound>& found, const std::vector<int64_t>& line,
                const Pieces& pieces, bool fits) const {
        int64_t bad = -1;
        const LetorFound* failed = nullptr;
        for (size_t i = 0; i < found.size() && failed == nullptr; ++i) {
            if (found[i].bad_line < 0) continue;
            failed = &found[i];
            bad = line[i] + found[i].bad_line;
        }
        if (!fits) {
            const auto [widest_line, widest] = widest_row(pieces);
            const int64_t at = line_ + widest_line;
            if (failed == nullptr || at < bad)
                throw LetorFailure{at + 1,
                                   "a dense matrix of " + std::to_string(std::max(widest, width_)) +
                                       " features is out of proportion to the file; read it with "
                                       "sparse=True, or say n_features= if the width is meant"};
        }
        if (failed != nullptr) throw LetorFailure{bad + 1, failed->message};
    }

    // Line (from 0, within the block) and index of the row with the largest feature index.
    static std::pair<int64_t, int64_t> widest_row(const Pieces& pieces) {
        int64_t line = 0, at = 0, widest = 0;
        for (size_t i = 0; i < pieces.size(); ++i) {
            for (const char* p = pieces[i].begin; p < pieces[i].end; ++line) {
                const char* stop =
                    static_cast<const char*>(std::memchr(p, '\n', pieces[i].end - p));
                const LetorCount one = count_letor({p, stop + 1});
                if (one.max_index > widest) {
                    widest = one.max_index;
                    at = line;
                }
                p = stop + 1;
            }
        }
        return {at, widest};
    }

    // Takes over what one piece found; pieces arrive in file order.
    void append(LetorFound& found, int64_t row, int64_t rows, int64_t slot) {
        for (size_t i = 0; i < found.run_rows.size(); ++i) {
            const std::string_view id = found.run_ids[i];
            if (!run_rows_.empty() && id == run_id(run_rows_.size() - 1)) continue;
            int64_t ignored;
            integer_ids_ = integer_ids_ && parse_integer(id, ignored);
            run_rows_.push_back(found.run_rows[i]);
            run_text_.append(id);
            run_id_ends_.push_back(run_text_.size());
        }
        if (!found.doc_ends.empty() || doc_ends_.size() > 0) {
            const int64_t base = static_cast<int64_t>(doc_text_.size());
            const size_t known = doc_ends_.size();
            doc_ends_.resize(row + rows);
            std::fill(doc_ends_.data() + known, doc_ends_.data() + row + rows, base);
            doc_text_.append(found.doc_text);
            found.doc_ends.resize(rows, static_cast<int64_t>(found.doc_text.size()));
            for (int64_t i = 0; i < rows; ++i) doc_ends_[row + i] = base + found.doc_ends[i];
        }
        if (options_.sparse) {
            // There was more room than values: close the gap to the piece before.
            if (found.stored > 0 && slot > stored_) {
                std::memmove(values_.data() + stored_, values_.data() + slot,
                             found.stored * sizeof(T));
                std::memmove(columns_.data() + stored_, columns_.data() + slot,
                             found.stored * sizeof(int32_t));
            }
            for (int64_t i = 0; i < rows; ++i) starts_[row + i + 1] += stored_;
            stored_ += found.stored;
        }
    }

    LetorOptions options_;
    int64_t row_ = 0, line_ = 0, width_ = 0, stored_ = 0;
    uint64_t text_ = 0;
    double density_ = 0;  // values kept per byte of text (sparse)
    bool decided_ = false, has_qid_ = true, integer_ids_ = true;
    Growing<T> values_;
    Growing<int32_t> columns_;
    Growing<int64_t> starts_;
    Growing<double> labels_;
    std::vector<int64_t> run_rows_;
    std::string run_text_;
    std::vector<size_t> run_id_ends_;
    std::string doc_text_;
    Growing<int64_t> doc_ends_;
};

}  // namespace rankwise
