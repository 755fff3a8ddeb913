#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "letor.hpp"

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

template <class T>
int64_t feed(LetorReader<T>& reader, In<uint8_t> text, int64_t start, int64_t stop, bool last) {
    const int64_t readable = static_cast<int64_t>(text.shape(0));
    if (start < 0 || start > stop || stop > readable)
        throw nb::index_error("start and stop must lie inside the text");
    const char* data = reinterpret_cast<const char*>(text.data());
    try {
        nb::gil_scoped_release release;
        return static_cast<int64_t>(reader.feed(data + start, stop - start, readable - start, last));
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
        .def("run_rows",
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

}  // namespace

void bind_letor(nb::module_& m) {
    nb::exception<LineError>(m, "LineError", PyExc_ValueError);
    bind_reader<float>(m, "LetorReader32");
    bind_reader<double>(m, "LetorReader64");
}
