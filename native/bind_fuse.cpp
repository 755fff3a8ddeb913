#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <tuple>
#include <vector>

#include "align.hpp"
#include "arrays.hpp"

namespace {

using namespace rankwise;
using namespace rankwise::lists;
using namespace nb::literals;

void check_slices(const In2<int64_t>& begin, const In2<int64_t>& end, size_t n_runs,
                  const std::vector<In<double>>& scores) {
    bool ok = begin.shape(0) == n_runs && end.shape(0) == n_runs &&
              end.shape(1) == begin.shape(1) && scores.size() == n_runs;
    for (size_t l = 0; ok && l < n_runs; ++l)
        for (size_t q = 0; q < begin.shape(1); ++q) {
            const int64_t a = begin.data()[l * begin.shape(1) + q];
            const int64_t b = end.data()[l * begin.shape(1) + q];
            ok &= 0 <= a && a <= b && b <= static_cast<int64_t>(scores[l].shape(0));
        }
    if (!ok) throw nb::value_error("slices must lie inside the columns of their run");
}

std::vector<const double*> pointers(const std::vector<In<double>>& scores) {
    std::vector<const double*> out;
    for (const auto& s : scores) out.push_back(s.data());
    return out;
}

template <class T>
Out<T> owned(std::unique_ptr<T[]> data, size_t n) {
    T* raw = data.release();
    nb::capsule owner(raw, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return Out<T>(raw, {n}, owner);
}

// Where a document stands twice in a topic: run, row and row.
nb::object repeat_of(const Aligned& a) {
    return nb::make_tuple(a.twice_run, a.twice_rows[0], a.twice_rows[1]);
}

nb::object align_integers(const std::vector<In<int64_t>>& ids,
                          const std::vector<In<double>>& scores, In2<int64_t> begin,
                          In2<int64_t> end, int n_threads) {
    check_slices(begin, end, ids.size(), scores);
    std::vector<IntegerIds> runs;
    for (size_t l = 0; l < ids.size(); ++l) {
        if (ids[l].shape(0) != scores[l].shape(0))
            throw nb::value_error("ids and scores must have the same length");
        runs.push_back({ids[l].data()});
    }
    const Slices slices{begin.data(), end.data(), static_cast<int64_t>(begin.shape(1)),
                        static_cast<int64_t>(ids.size())};
    Aligned a;
    std::unique_ptr<int64_t[]> items;
    {
        nb::gil_scoped_release release;
        a = align(runs, pointers(scores), slices, n_threads);
        if (a.twice_run < 0) {
            items = raw_array<int64_t>(a.offsets.back());
            each_source(a, slices,
                        [&](int64_t i, int64_t run, int64_t row) { items[i] = runs[run].id[row]; });
        }
    }
    if (a.twice_run >= 0) return repeat_of(a);
    const auto n = static_cast<size_t>(a.n_entries()),
               n_items = static_cast<size_t>(a.offsets.back());
    return nb::make_tuple(move_array(std::move(a.offsets)), move_array(std::move(a.starts)),
                          owned(std::move(a.item), n), owned(std::move(a.score), n),
                          owned(std::move(items), n_items));
}

nb::object align_names(const std::vector<In<uint8_t>>& bytes,
                       const std::vector<In<int64_t>>& offsets,
                       const std::vector<In<double>>& scores, In2<int64_t> begin, In2<int64_t> end,
                       int n_threads) {
    check_slices(begin, end, bytes.size(), scores);
    std::vector<NamedIds> runs;
    for (size_t l = 0; l < bytes.size(); ++l) {
        check_offsets(offsets[l], bytes[l].shape(0));
        if (offsets[l].shape(0) != scores[l].shape(0) + 1)
            throw nb::value_error("names and scores must have the same length");
        runs.push_back({reinterpret_cast<const char*>(bytes[l].data()), offsets[l].data()});
    }
    const Slices slices{begin.data(), end.data(), static_cast<int64_t>(begin.shape(1)),
                        static_cast<int64_t>(bytes.size())};
    Aligned a;
    std::unique_ptr<int32_t[]> run_of;
    std::unique_ptr<int64_t[]> row_of;
    {
        nb::gil_scoped_release release;
        a = align(runs, pointers(scores), slices, n_threads);
        if (a.twice_run < 0) {
            run_of = raw_array<int32_t>(a.offsets.back());
            row_of = raw_array<int64_t>(a.offsets.back());
            each_source(a, slices, [&](int64_t i, int64_t run, int64_t row) {
                run_of[i] = static_cast<int32_t>(run);
                row_of[i] = row;
            });
        }
    }
    if (a.twice_run >= 0) return repeat_of(a);
    const auto n = static_cast<size_t>(a.n_entries()),
               n_items = static_cast<size_t>(a.offsets.back());
    return nb::make_tuple(move_array(std::move(a.offsets)), move_array(std::move(a.starts)),
                          owned(std::move(a.item), n), owned(std::move(a.score), n),
                          owned(std::move(run_of), n_items), owned(std::move(row_of), n_items));
}

void check_sources(const In<int32_t>& run, const In<int64_t>& row,
                   const std::vector<int64_t>& sizes) {
    bool ok = run.shape(0) == row.shape(0);
    for (size_t i = 0; ok && i < run.shape(0); ++i) {
        const auto l = static_cast<size_t>(run.data()[i]);
        ok = l < sizes.size() && 0 <= row.data()[i] && row.data()[i] < sizes[l];
    }
    if (!ok) throw nb::value_error("run and row must lie inside the runs");
}

std::tuple<Out<uint8_t>, Out<int64_t>> gather_names(const std::vector<In<uint8_t>>& bytes,
                                                    const std::vector<In<int64_t>>& offsets,
                                                    In<int32_t> run, In<int64_t> row) {
    std::vector<int64_t> sizes;
    std::vector<NamedIds> runs;
    for (size_t l = 0; l < bytes.size(); ++l) {
        check_offsets(offsets[l], bytes[l].shape(0));
        sizes.push_back(static_cast<int64_t>(offsets[l].shape(0)) - 1);
        runs.push_back({reinterpret_cast<const char*>(bytes[l].data()), offsets[l].data()});
    }
    check_sources(run, row, sizes);
    const size_t n = run.shape(0);
    auto cuts = new_array<int64_t>(n + 1);
    cuts.data()[0] = 0;
    for (size_t i = 0; i < n; ++i)
        cuts.data()[i + 1] =
            cuts.data()[i] + static_cast<int64_t>(runs[run.data()[i]].name(row.data()[i]).size());
    auto out = new_array<uint8_t>(static_cast<size_t>(cuts.data()[n]));
    for (size_t i = 0; i < n; ++i) {
        const std::string_view name = runs[run.data()[i]].name(row.data()[i]);
        std::copy(name.begin(), name.end(), out.data() + cuts.data()[i]);
    }
    return {out, cuts};
}

std::tuple<Out<int64_t>, Out<int64_t>> best(In<double> score, In<int64_t> offsets, int64_t k,
                                            int n_threads) {
    check_offsets(offsets, score.shape(0));
    const auto n_queries = static_cast<int64_t>(offsets.shape(0)) - 1;
    auto cuts = new_array<int64_t>(offsets.shape(0));
    keep_counts(offsets.data(), n_queries, k, cuts.data());
    auto rows = new_array<int64_t>(static_cast<size_t>(cuts.data()[n_queries]));
    nb::gil_scoped_release release;
    best_rows(score.data(), offsets.data(), n_queries, cuts.data(), rows.data(), n_threads);
    return {rows, cuts};
}

// --- Dictionaries -------------------------------------------------------------------------------

[[noreturn]] void pending_error() { throw nb::python_error(); }

// Documents of one topic in one run, {doc: score}, into the columns.
void add_dictionary(PyObject* entries, Numbering& numbering, std::vector<PyObject*>& keys,
                    std::vector<int32_t>& item, std::vector<double>& score) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(entries, &at, &key, &value)) {
        // Comparing two of these runs no code of the user's.
        if (!PyUnicode_CheckExact(key) && !PyLong_CheckExact(key))
            throw nb::type_error("a document must be a string or an integer");
        const Py_hash_t raw = PyObject_Hash(key);
        if (raw == -1 && PyErr_Occurred()) pending_error();
        const double number = PyFloat_AsDouble(value);
        if (number == -1.0 && PyErr_Occurred()) pending_error();
        const auto next = static_cast<int32_t>(keys.size());
        const int32_t found = numbering.find(mix(static_cast<uint64_t>(raw)), [&](int32_t known) {
            if (keys[known] == key) return true;
            const int same = PyObject_RichCompareBool(keys[known], key, Py_EQ);
            if (same < 0) pending_error();
            return same == 1;
        });
        if (found == next) keys.push_back(key);
        item.push_back(found);
        score.push_back(number);
    }
}

// Runs {topic: {doc: score}} as flat lists; the last value is the list of documents, topic after
// topic. `topics` names the topics that are wanted.
nb::tuple dict_lists(nb::list runs, nb::list topics) {
    std::vector<int64_t> offsets{0}, starts{0};
    std::vector<int32_t> item;
    std::vector<double> score;
    nb::list docs;
    Numbering numbering;
    std::vector<PyObject*> keys;
    for (nb::handle topic : topics) {
        std::vector<PyObject*> answers;
        int64_t total = 0;
        for (nb::handle run : runs) {
            PyObject* entries = PyDict_GetItemWithError(run.ptr(), topic.ptr());
            if (entries == nullptr && PyErr_Occurred()) pending_error();
            if (entries != nullptr && !PyDict_Check(entries))
                throw nb::type_error("a run must map topics to dictionaries of documents");
            answers.push_back(entries);
            if (entries != nullptr) total += PyDict_Size(entries);
        }
        numbering.start(total);
        keys.clear();
        for (PyObject* entries : answers) {
            if (entries != nullptr) add_dictionary(entries, numbering, keys, item, score);
            starts.push_back(static_cast<int64_t>(item.size()));
        }
        for (PyObject* key : keys)
            if (PyList_Append(docs.ptr(), key) < 0) pending_error();
        offsets.push_back(offsets.back() + static_cast<int64_t>(keys.size()));
    }
    return nb::make_tuple(move_array(std::move(offsets)), move_array(std::move(starts)),
                          move_array(std::move(item)), move_array(std::move(score)), docs);
}

// {topic: {doc: score}} from rows of documents.
nb::dict nested(nb::list topics, nb::list docs, In<int64_t> rows, In<int64_t> cuts,
                In<double> score) {
    check_offsets(cuts, rows.shape(0));
    const auto n = static_cast<int64_t>(PyList_GET_SIZE(docs.ptr()));
    if (cuts.shape(0) != nb::len(topics) + 1 || static_cast<int64_t>(score.shape(0)) != n)
        throw nb::value_error("cuts must have one entry per topic and one more, score one per doc");
    nb::dict out;
    for (size_t q = 0; q + 1 < cuts.shape(0); ++q) {
        nb::dict entries;
        for (int64_t p = cuts.data()[q]; p < cuts.data()[q + 1]; ++p) {
            const int64_t row = rows.data()[p];
            if (row < 0 || row >= n) throw nb::value_error("rows must number the documents");
            nb::object value = nb::steal(PyFloat_FromDouble(score.data()[row]));
            if (PyDict_SetItem(entries.ptr(), PyList_GET_ITEM(docs.ptr(), row), value.ptr()) < 0)
                pending_error();
        }
        out[topics[q]] = entries;
    }
    return out;
}

}  // namespace

void bind_fuse(nb::module_& m) {
    constexpr const char* doc =
        "offsets, starts, item, score and the documents (names: run and row of their first "
        "appearance); or (run, row, row) of a document that stands twice in a topic.";
    m.def("align_integers", &align_integers, "ids"_a, "scores"_a, "begin"_a.noconvert(),
          "end"_a.noconvert(), "n_threads"_a = 0, doc);
    m.def("align_names", &align_names, "bytes"_a, "offsets"_a, "scores"_a, "begin"_a.noconvert(),
          "end"_a.noconvert(), "n_threads"_a = 0, doc);
    m.def("gather_names", &gather_names, "bytes"_a, "offsets"_a, "run"_a.noconvert(),
          "row"_a.noconvert(), "Names at (run, row).");
    m.def("best_rows", &best, "score"_a.noconvert(), "offsets"_a.noconvert(), "k"_a,
          "n_threads"_a = 0, "Rows of every query by descending score, and their offsets.");
    m.def("dict_lists", &dict_lists, "runs"_a, "topics"_a,
          "Flat lists from {topic: {doc: score}}, and the documents.");
    m.def("nested", &nested, "topics"_a, "docs"_a, "rows"_a.noconvert(), "cuts"_a.noconvert(),
          "score"_a.noconvert(), "{topic: {doc: score}} from rows of documents.");
}
