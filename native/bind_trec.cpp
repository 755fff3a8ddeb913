#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.hpp"
#include "trec.hpp"
#include "trec_write.hpp"

namespace {

using namespace rankwise;
using namespace nb::literals;
using Bytes = In<uint8_t>;
using Offsets = In<int64_t>;

std::string_view text_of(const Bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.shape(0)};
}

trec::Strings strings(const Bytes& bytes, const Offsets& offsets) {
    check_offsets(offsets, bytes.shape(0));
    return {reinterpret_cast<const char*>(bytes.data()), offsets.data(),
            static_cast<int64_t>(offsets.shape(0)) - 1};
}

// Hands a buffer's memory to NumPy without copying it.
template <class To, class From>
Out<To> hand_over(trec::Buffer<From>&& buffer) {
    static_assert(sizeof(To) == sizeof(From));
    auto* kept = new trec::Buffer<From>(std::move(buffer));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<trec::Buffer<From>*>(p); });
    return Out<To>(reinterpret_cast<To*>(kept->data()), {kept->size()}, owner);
}

using Column = std::pair<Out<uint8_t>, Out<int64_t>>;

Column move_text(trec::Text&& text) {
    return {hand_over<uint8_t>(std::move(text.bytes)), hand_over<int64_t>(std::move(text.offsets))};
}

auto read(bool is_run, Bytes data, const std::string& name, bool subtopics, int n_threads) {
    trec::Columns c;
    {
        nb::gil_scoped_release release;
        c = trec::read_columns(is_run ? trec::Kind::run : trec::Kind::qrels, text_of(data), name,
                               subtopics, n_threads);
    }
    return std::make_tuple(move_text(std::move(c.topics)), hand_over<int64_t>(std::move(c.offsets)),
                           move_text(std::move(c.docs)), hand_over<double>(std::move(c.value)),
                           move_text(std::move(c.extra)), nb::bytes(c.tag.data(), c.tag.size()),
                           c.rank_conflicts);
}

auto read_run(Bytes data, const std::string& name, int n_threads) {
    return read(true, data, name, false, n_threads);
}

auto read_qrels(Bytes data, const std::string& name, bool subtopics, int n_threads) {
    return read(false, data, name, subtopics, n_threads);
}

// Owns the arrays that the tables point into.
struct Index {
    Bytes topic_bytes;
    Offsets topic_offsets;
    Offsets offsets;
    Bytes doc_bytes;
    Offsets doc_offsets;
    In<double> label;
    trec::Judgements judged;

    Index(Bytes tb, Offsets to, Offsets o, Bytes db, Offsets dof, In<double> l)
        : topic_bytes(tb),
          topic_offsets(to),
          offsets(o),
          doc_bytes(db),
          doc_offsets(dof),
          label(l),
          judged(strings(tb, to), strings(db, dof), checked(o, to, dof, l), l.data()) {}

    static const int64_t* checked(const Offsets& o, const Offsets& to, const Offsets& dof,
                                  const In<double>& l) {
        check_offsets(o, l.shape(0));
        if (o.shape(0) != to.shape(0) || dof.shape(0) != l.shape(0) + 1)
            throw nb::value_error("topics, documents and labels must have matching lengths");
        return o.data();
    }
};

auto joined(trec::Joined&& j) {
    return std::make_tuple(
        hand_over<int64_t>(std::move(j.topics)), hand_over<int64_t>(std::move(j.offsets)),
        hand_over<double>(std::move(j.label)), hand_over<double>(std::move(j.score)),
        hand_over<int64_t>(std::move(j.source)), j.n_pooled);
}

// Owns what a trec::TextJoin points into.
struct Blocks {
    Bytes data;
    nb::object index;
    trec::TextJoin text;
    int n_threads;

    Blocks(nb::object i, Bytes d, const std::string& name, int threads)
        : data(d),
          index(i),
          text(nb::cast<const Index&>(i).judged, text_of(d), name),
          n_threads(threads) {}
};

std::optional<decltype(joined(trec::Joined()))> next_block(Blocks& self) {
    trec::Joined result;
    {
        nb::gil_scoped_release release;
        if (!self.text.next(result, self.n_threads)) return std::nullopt;
    }
    return joined(std::move(result));
}

auto join_columns(const Index& index, Bytes topic_bytes, Offsets topic_offsets, Offsets offsets,
                  Bytes doc_bytes, Offsets doc_offsets, In<double> score, bool keep_source,
                  int n_threads) {
    const trec::Strings topics = strings(topic_bytes, topic_offsets);
    const trec::Strings docs = strings(doc_bytes, doc_offsets);
    Index::checked(offsets, topic_offsets, doc_offsets, score);
    trec::Joined result;
    int64_t n_missing = 0, n_unjudged = 0;
    {
        nb::gil_scoped_release release;
        result = trec::join_columns(index.judged, topics, docs, offsets.data(), score.data(),
                                    keep_source, n_threads, n_missing, n_unjudged);
    }
    return std::tuple_cat(joined(std::move(result)), std::make_tuple(n_missing, n_unjudged));
}

std::optional<std::pair<int64_t, int64_t>> first_duplicate(Offsets offsets, Bytes doc_bytes,
                                                           Offsets doc_offsets,
                                                           std::optional<Bytes> extra_bytes,
                                                           std::optional<Offsets> extra_offsets) {
    const trec::Strings docs = strings(doc_bytes, doc_offsets);
    check_offsets(offsets, static_cast<size_t>(docs.size));
    trec::Strings extra{};
    const bool both = extra_bytes && extra_offsets;
    if (both) {
        extra = strings(*extra_bytes, *extra_offsets);
        if (extra.size != docs.size)
            throw nb::value_error("subtopics and documents must have the same length");
    }
    for (size_t t = 0; t + 1 < offsets.shape(0); ++t) {
        const auto found = trec::find_duplicate(docs, both ? &extra : nullptr, offsets.data()[t],
                                                offsets.data()[t + 1]);
        if (found.second >= 0) return found;
    }
    return std::nullopt;
}

// Strings of the first column where the index is at least 0, else string -1 - index of the second.
Column pick_strings(Bytes bytes_a, Offsets offsets_a, Bytes bytes_b, Offsets offsets_b,
                    In<int64_t> index) {
    const trec::Strings a = strings(bytes_a, offsets_a), b = strings(bytes_b, offsets_b);
    const auto n = static_cast<int64_t>(index.shape(0));
    const int64_t* at = index.data();
    trec::Text out;
    out.offsets.resize(n + 1);
    bool inside = true;
    {
        nb::gil_scoped_release release;
        for (int64_t i = 0; inside && i < n; ++i) {
            inside = at[i] < a.size && at[i] >= -b.size;
            if (!inside) break;
            const std::string_view s = at[i] >= 0 ? a[at[i]] : b[-1 - at[i]];
            out.offsets[i + 1] = out.offsets[i] + static_cast<int64_t>(s.size());
        }
        if (inside) {
            out.bytes.resize(out.offsets[n]);
            for (int64_t i = 0; i < n; ++i) {
                const std::string_view s = at[i] >= 0 ? a[at[i]] : b[-1 - at[i]];
                std::copy(s.begin(), s.end(), out.bytes.data() + out.offsets[i]);
            }
        }
    }
    if (!inside) throw nb::value_error("index must lie inside the columns");
    return move_text(std::move(out));
}

nb::bytes format_run(Bytes topic_bytes, Offsets topic_offsets, Offsets offsets, Bytes doc_bytes,
                     Offsets doc_offsets, In<double> score, Bytes tag) {
    Index::checked(offsets, topic_offsets, doc_offsets, score);
    const std::string text =
        trec::format_run(strings(topic_bytes, topic_offsets), offsets.data(),
                         strings(doc_bytes, doc_offsets), score.data(), text_of(tag));
    return nb::bytes(text.data(), text.size());
}

nb::bytes format_qrels(Bytes topic_bytes, Offsets topic_offsets, Offsets offsets, Bytes doc_bytes,
                       Offsets doc_offsets, In<double> label, std::optional<Bytes> extra_bytes,
                       std::optional<Offsets> extra_offsets) {
    Index::checked(offsets, topic_offsets, doc_offsets, label);
    trec::Strings extra{};
    const bool both = extra_bytes && extra_offsets;
    if (both) {
        extra = strings(*extra_bytes, *extra_offsets);
        if (static_cast<size_t>(extra.size) != label.shape(0))
            throw nb::value_error("subtopics and labels must have the same length");
    }
    const std::string text =
        trec::format_qrels(strings(topic_bytes, topic_offsets), offsets.data(),
                           strings(doc_bytes, doc_offsets), label.data(), both ? &extra : nullptr);
    return nb::bytes(text.data(), text.size());
}

// Code points of ASCII strings, padded with zeros to the longest: NumPy's own layout of str.
Out2<uint32_t> widen(Bytes bytes, Offsets offsets) {
    const trec::Strings s = strings(bytes, offsets);
    size_t width = 1;
    for (int64_t i = 0; i < s.size; ++i) width = std::max(width, s[i].size());
    auto out = new_matrix<uint32_t>(static_cast<size_t>(s.size), width);
    nb::gil_scoped_release release;
    for (int64_t i = 0; i < s.size; ++i) {
        uint32_t* row = out.data() + static_cast<size_t>(i) * width;
        size_t j = 0;
        for (const char c : s[i]) row[j++] = static_cast<unsigned char>(c);
        std::fill(row + j, row + width, 0U);
    }
    return out;
}

// The way back; None when a code point is not ASCII.
std::optional<Column> narrow(In2<uint32_t> points) {
    const size_t n = points.shape(0), width = points.shape(1);
    trec::Text out;
    bool ascii = true;
    {
        nb::gil_scoped_release release;
        out.offsets.resize(n + 1);
        for (size_t i = 0; i < n && ascii; ++i) {
            const uint32_t* row = points.data() + i * width;
            size_t length = width;
            while (length > 0 && row[length - 1] == 0) --length;
            for (size_t j = 0; j < length; ++j) {
                ascii = ascii && row[j] < 128;
                out.bytes.push_back(static_cast<char>(row[j]));
            }
            out.offsets[i + 1] = static_cast<int64_t>(out.bytes.size());
        }
    }
    if (!ascii) return std::nullopt;
    return move_text(std::move(out));
}

}  // namespace

void bind_trec(nb::module_& m) {
    m.def("read_run", &read_run, "data"_a.noconvert(), "name"_a, "n_threads"_a = 0,
          "Columns of a TREC run: topics, offsets, docs, score, (nothing), tag, rank conflicts.");
    m.def("read_qrels", &read_qrels, "data"_a.noconvert(), "name"_a, "subtopics"_a = false,
          "n_threads"_a = 0,
          "Columns of TREC qrels: topics, offsets, docs, label, subtopics, (nothing), 0.");
    nb::class_<Index>(m, "Judgements", "Tables of judged documents, one per topic.")
        .def(nb::init<Bytes, Offsets, Offsets, Bytes, Offsets, In<double>>(),
             "topic_bytes"_a.noconvert(), "topic_offsets"_a.noconvert(), "offsets"_a.noconvert(),
             "doc_bytes"_a.noconvert(), "doc_offsets"_a.noconvert(), "label"_a.noconvert())
        .def("join_columns", &join_columns, "topic_bytes"_a.noconvert(),
             "topic_offsets"_a.noconvert(), "offsets"_a.noconvert(), "doc_bytes"_a.noconvert(),
             "doc_offsets"_a.noconvert(), "score"_a.noconvert(), "keep_source"_a = false,
             "n_threads"_a = 0,
             "Joins the columns of a run: topics, offsets, label, score, source, pooled documents, "
             "topics missing, topics unjudged.");
    nb::class_<Blocks>(m, "RunBlocks", "Joins the text of a run, one block of topics at a time.")
        .def(nb::init<nb::object, Bytes, const std::string&, int>(), "judgements"_a,
             "data"_a.noconvert(), "name"_a, "n_threads"_a = 0)
        .def("next", &next_block,
             "Topics, offsets, label, score, (nothing), pooled documents; None at the end, or "
             "once a topic's lines are not together.")
        .def(
            "missing", [](const Blocks& b) { return joined(b.text.missing()); },
            "The same for the judged topics that the run does not hold.")
        .def_prop_ro("contiguous", [](const Blocks& b) { return b.text.contiguous(); })
        .def_prop_ro("n_unjudged", [](const Blocks& b) { return b.text.n_unjudged(); })
        .def_prop_ro("rank_conflicts", [](const Blocks& b) { return b.text.rank_conflicts(); })
        .def_prop_ro("tag", [](const Blocks& b) {
            return nb::bytes(b.text.tag().data(), b.text.tag().size());
        });
    m.def("first_duplicate", &first_duplicate, "offsets"_a.noconvert(), "doc_bytes"_a.noconvert(),
          "doc_offsets"_a.noconvert(), "extra_bytes"_a.noconvert() = nb::none(),
          "extra_offsets"_a.noconvert() = nb::none(),
          "Rows of the first document that appears twice in a topic, or None.");
    m.def("pick_strings", &pick_strings, "bytes_a"_a.noconvert(), "offsets_a"_a.noconvert(),
          "bytes_b"_a.noconvert(), "offsets_b"_a.noconvert(), "index"_a.noconvert(),
          "Strings by index: from the first column at 0 and above, from the second below.");
    m.def("format_run", &format_run, "topic_bytes"_a.noconvert(), "topic_offsets"_a.noconvert(),
          "offsets"_a.noconvert(), "doc_bytes"_a.noconvert(), "doc_offsets"_a.noconvert(),
          "score"_a.noconvert(), "tag"_a.noconvert(), "Text of a run file.");
    m.def("format_qrels", &format_qrels, "topic_bytes"_a.noconvert(), "topic_offsets"_a.noconvert(),
          "offsets"_a.noconvert(), "doc_bytes"_a.noconvert(), "doc_offsets"_a.noconvert(),
          "label"_a.noconvert(), "extra_bytes"_a.noconvert() = nb::none(),
          "extra_offsets"_a.noconvert() = nb::none(), "Text of a qrels file.");
    m.def("widen_strings", &widen, "bytes"_a.noconvert(), "offsets"_a.noconvert(),
          "Code points of ASCII strings as a matrix padded with zeros.");
    m.def("narrow_strings", &narrow, "points"_a.noconvert(),
          "ASCII strings from their code points, or None.");
}
