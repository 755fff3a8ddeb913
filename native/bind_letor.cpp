#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "letor.hpp"
#include "letor_write.hpp"
#include "permute.hpp"
#include "summary.hpp"

namespace {

// A bad line: its number and what was expected there. A ValueError of its own type, so that the
// caller can put the name of the file before it.
struct LineError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using namespace rankwise;
using namespace nb::literals;

template <class T>
Out<T> take(Growing<T>& from) {
    const size_t n = from.size();
    T* data = from.release();
    nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
    return Out<T>(data, {n}, owner);
}

// The rows of a CSR matrix must lie inside its values, the columns inside the matrix.
template <class T, class I>
void check_csr(const In<T>& values, const In<I>& columns, const In<I>& starts, int64_t n_features) {
    const size_t n = starts.shape(0);
    bool ok = n > 0 && starts.data()[0] == 0 && values.shape(0) == columns.shape(0) &&
              static_cast<size_t>(starts.data()[n - 1]) <= values.shape(0);
    for (size_t i = 1; ok && i < n; ++i) ok = starts.data()[i - 1] <= starts.data()[i];
    for (size_t i = 0; ok && i < columns.shape(0); ++i)
        ok = columns.data()[i] >= 0 && columns.data()[i] < n_features;
    if (!ok) throw nb::value_error("not a CSR matrix: rows or columns out of range");
}

template <class T>
int64_t feed(LetorReader<T>& reader, In<uint8_t> text, int64_t start, int64_t stop, bool last) {
    const int64_t readable = static_cast<int64_t>(text.shape(0));
    if (start < 0 || start > stop || stop > readable)
        throw nb::index_error("start and stop must lie inside the text");
    const char* data = reinterpret_cast<const char*>(text.data());
    try {
        nb::gil_scoped_release release;
        return static_cast<int64_t>(
            reader.feed(data + start, stop - start, readable - start, last));
    } catch (const LetorFailure& failure) {
        throw LineError(std::to_string(failure.line) + ": " + failure.message);
    }
}

template <class T>
nb::object query_ids(const LetorReader<T>& reader) {
    const size_t n = reader.run_rows().size();
    if (reader.integer_ids()) {
        auto out = new_array<int64_t>(n);
        for (size_t i = 0; i < n; ++i) parse_integer(reader.run_id(i), out.data()[i]);
        return nb::cast(out);
    }
    nb::list out;
    for (size_t i = 0; i < n; ++i) {
        const std::string_view id = reader.run_id(i);
        out.append(nb::bytes(id.data(), id.size()));
    }
    return out;
}

// Document ids as code points in a matrix, one row each and zeros behind, the memory of a NumPy
// string array; None when a few long comments would make it much larger than the text, and the
// caller takes them one by one.
template <class T>
nb::object docs_matrix(const LetorReader<T>& reader) {
    const size_t n = static_cast<size_t>(reader.n_rows());
    size_t width = 1, total = 0;
    for (size_t i = 0; i < n; ++i) {
        const size_t length = code_points(reader.doc(i));
        width = std::max(width, length);
        total += length;
    }
    if (n * width > 8 * total + (size_t{1} << 20)) return nb::none();
    auto out = new_matrix<uint32_t>(n, width);
    {
        nb::gil_scoped_release release;
        for (size_t i = 0; i < n; ++i) decode_utf8(reader.doc(i), out.data() + i * width, width);
    }
    return nb::cast(out);
}

template <class T>
void bind_reader(nb::module_& m, const char* name) {
    using Reader = LetorReader<T>;
    nb::class_<Reader>(m, name, "Reads LETOR text block by block.")
        .def(
            "__init__",
            [](Reader* self, bool sparse, bool absent_nan, bool unjudged, bool docs,
               bool qid_optional, int64_t n_features, uint64_t total_text, int n_threads) {
                LetorOptions options;
                options.sparse = sparse;
                options.absent_nan = absent_nan;
                options.unjudged = unjudged;
                options.keep_docs = docs;
                options.qid_optional = qid_optional;
                options.n_features = n_features;
                options.total_text = total_text;
                options.n_threads = n_threads;
                new (self) Reader(options);
            },
            nb::kw_only(), "sparse"_a, "absent_nan"_a, "unjudged"_a, "docs"_a, "qid_optional"_a,
            "n_features"_a, "total_text"_a = 0, "n_threads"_a = 0)
        .def("feed", &feed<T>, "text"_a.noconvert(), "start"_a, "stop"_a, "last"_a,
             "Parses the whole lines of text[start:stop]; returns the bytes used.")
        .def_prop_ro("n_rows", &Reader::n_rows)
        .def_prop_ro("n_features", &Reader::n_features)
        .def_prop_ro("has_qid", &Reader::has_qid)
        .def_prop_ro("has_docs", &Reader::has_docs)
        .def("take_values", [](Reader& r) { return take(r.values()); })
        .def("take_columns", [](Reader& r) { return take(r.columns()); })
        .def("take_starts", [](Reader& r) { return take(r.starts()); })
        .def("take_labels", [](Reader& r) { return take(r.labels()); })
        .def(
            "run_rows",
            [](const Reader& r) { return move_array(std::vector<int64_t>(r.run_rows())); },
            "Rows at which another query id begins.")
        .def("run_ids", &query_ids<T>, "Their ids: an int64 array, or a list of bytes.")
        .def("docs_matrix", &docs_matrix<T>)
        .def("doc", [](const Reader& r, int64_t row) {
            if (row < 0 || row >= r.n_rows()) throw nb::index_error("row");
            const std::string_view doc = r.doc(static_cast<size_t>(row));
            return nb::bytes(doc.data(), doc.size());
        });
}

// ---------------------------------------------------------------- writing

// The lines of a text, which must be `n` unless it is empty.
std::vector<std::string_view> lines_of(const nb::bytes& text, size_t n, bool optional) {
    std::vector<std::string_view> lines;
    std::string_view rest(text.c_str(), text.size());
    if (optional && rest.empty()) return lines;
    for (;;) {
        const size_t end = rest.find('\n');
        lines.push_back(rest.substr(0, end));
        if (end == std::string_view::npos) break;
        rest.remove_prefix(end + 1);
    }
    if (lines.size() != n) throw nb::value_error("expected one line per row");
    return lines;
}

template <class Rows>
nb::bytes format_rows(const Rows& rows, int64_t n_rows, In<double> labels, nb::bytes ids,
                      nb::bytes comments, int64_t begin, int64_t end, int n_threads) {
    if (static_cast<int64_t>(labels.shape(0)) != n_rows || begin < 0 || begin >= end ||
        end > n_rows)
        throw nb::value_error("rows out of range");
    const size_t n = static_cast<size_t>(end - begin);
    const auto id_lines = lines_of(ids, n, false);
    const auto comment_lines = lines_of(comments, n, true);
    std::string text;
    {
        nb::gil_scoped_release release;
        text = format_letor(rows, labels.data(), id_lines, comment_lines, begin, end, n_threads);
    }
    return nb::bytes(text.data(), text.size());
}

template <class T>
nb::bytes format_dense(In2<T> X, In<double> labels, nb::bytes ids, nb::bytes comments,
                       int64_t begin, int64_t end, int n_threads) {
    const DenseRows<T> rows{X.data(), static_cast<int64_t>(X.shape(1))};
    return format_rows(rows, static_cast<int64_t>(X.shape(0)), labels, ids, comments, begin, end,
                       n_threads);
}

template <class T, class I>
nb::bytes format_csr(In<T> values, In<I> columns, In<I> starts, int64_t n_features,
                     In<double> labels, nb::bytes ids, nb::bytes comments, int64_t begin,
                     int64_t end, int n_threads) {
    check_csr(values, columns, starts, n_features);
    const SparseRows<T, I> rows{values.data(), columns.data(), starts.data(), n_features};
    return format_rows(rows, static_cast<int64_t>(starts.shape(0)) - 1, labels, ids, comments,
                       begin, end, n_threads);
}

// ---------------------------------------------------------------- summary

nb::tuple as_tuple(FeatureSummary&& s) {
    return nb::make_tuple(move_array(std::move(s.missing)), move_array(std::move(s.varies)),
                          move_array(std::move(s.query_varies)));
}

template <class T>
nb::tuple summary_dense(In2<T> X, In<int64_t> offsets) {
    check_offsets(offsets, X.shape(0));
    return as_tuple(summarize_dense(X.data(), offsets.data(),
                                    static_cast<int64_t>(offsets.shape(0)) - 1,
                                    static_cast<int64_t>(X.shape(1))));
}

template <class T, class I>
nb::tuple summary_csr(In<T> values, In<I> columns, In<I> starts, int64_t n_features,
                      In<int64_t> offsets) {
    check_csr(values, columns, starts, n_features);
    check_offsets(offsets, starts.shape(0) - 1);
    return as_tuple(summarize_csr(values.data(), columns.data(), starts.data(), offsets.data(),
                                  static_cast<int64_t>(offsets.shape(0)) - 1, n_features));
}

template <class T>
void permute(nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu> X, In<int64_t> order) {
    if (order.shape(0) != X.shape(0)) throw nb::value_error("order must name every row");
    permute_rows(X.data(), static_cast<int64_t>(X.shape(0)), static_cast<int64_t>(X.shape(1)),
                 order.data());
}

template <class T>
void bind_dense(nb::module_& m) {
    m.def("format_letor", &format_dense<T>, "X"_a.noconvert(), "labels"_a.noconvert(), "ids"_a,
          "comments"_a, "begin"_a, "end"_a, "n_threads"_a = 0,
          "LETOR text of the rows [begin, end); ids and comments hold one line for each of them.");
    m.def("permute_rows", &permute<T>, "X"_a.noconvert(), "order"_a.noconvert(),
          "Moves the rows of X in place: row i becomes what was row order[i].");
    m.def("summarize_features", &summary_dense<T>, "X"_a.noconvert(), "offsets"_a.noconvert(),
          "Per feature: missing values, whether it varies, whether it varies inside a query.");
}

template <class T, class I>
void bind_csr(nb::module_& m) {
    m.def("format_letor_csr", &format_csr<T, I>, "values"_a.noconvert(), "columns"_a.noconvert(),
          "starts"_a.noconvert(), "n_features"_a, "labels"_a.noconvert(), "ids"_a, "comments"_a,
          "begin"_a, "end"_a, "n_threads"_a = 0, "The same for a CSR matrix.");
    m.def("summarize_features_csr", &summary_csr<T, I>, "values"_a.noconvert(),
          "columns"_a.noconvert(), "starts"_a.noconvert(), "n_features"_a, "offsets"_a.noconvert(),
          "The same for a CSR matrix.");
}

}  // namespace

void bind_letor(nb::module_& m) {
    nb::exception<LineError>(m, "LineError", PyExc_ValueError);
    bind_reader<float>(m, "LetorReader32");
    bind_reader<double>(m, "LetorReader64");
    bind_dense<float>(m);
    bind_dense<double>(m);
    bind_csr<float, int32_t>(m);
    bind_csr<float, int64_t>(m);
    bind_csr<double, int32_t>(m);
    bind_csr<double, int64_t>(m);
}
