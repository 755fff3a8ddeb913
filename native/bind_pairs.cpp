#include <nanobind/stl/tuple.h>

#include <memory>

#include "loss_arrays.hpp"

namespace {

using namespace rankwise;
using namespace nb::literals;
// A feature matrix that keeps the arrays it looks at alive.
struct Features {
    std::unique_ptr<Rows> rows;
    nb::object kept;
};

// Which rows, in which order: all of them as they are, unless `order` lists their numbers.
using Order = std::optional<In<int64_t>>;

int64_t check_order(const Order& order, int64_t n_rows) {
    if (!order) return n_rows;
    const int64_t n = static_cast<int64_t>(order->shape(0));
    for (int64_t i = 0; i < n; ++i)
        if (order->data()[i] < 0 || order->data()[i] >= n_rows)
            throw nb::value_error("order must hold numbers of rows");
    return n;
}

template <class T>
Features* dense_features(In2<T> X, Order order) {
    const int64_t n = check_order(order, static_cast<int64_t>(X.shape(0)));
    return new Features{std::make_unique<DenseRows<T>>(X.data(), order ? order->data() : nullptr, n,
                                                       static_cast<int64_t>(X.shape(1))),
                        nb::make_tuple(X, order)};
}

template <class T, class I>
Features* sparse_features(In<T> data, In<I> columns, In<I> starts, int64_t n_columns, Order order) {
    const I* start = starts.data();
    const int64_t n = static_cast<int64_t>(starts.shape(0)) - 1;
    bool ok = n >= 0 && start[0] == 0 && static_cast<size_t>(start[n]) == data.shape(0) &&
              data.shape(0) == columns.shape(0);
    for (int64_t i = 0; ok && i < n; ++i) ok = start[i] <= start[i + 1];
    for (size_t k = 0; ok && k < columns.shape(0); ++k)
        ok = columns.data()[k] >= 0 && columns.data()[k] < n_columns;
    if (!ok) throw nb::value_error("data, columns and starts must form a CSR matrix");
    const int64_t n_rows = check_order(order, n);
    auto rows = std::make_unique<SparseRows<T, I>>(
        data.data(), columns.data(), start, order ? order->data() : nullptr, n_rows, n_columns);
    return new Features{std::move(rows), nb::make_tuple(data, columns, starts, order)};
}

Out<double> scores(const Features& X, Column w, int n_threads, bool quick) {
    check_length("w", w, X.rows->n_columns);
    auto out = new_array<double>(X.rows->n_rows);
    nb::gil_scoped_release release;
    matvec(*X.rows, w.data(), out.data(), quick, n_threads);
    return out;
}

Out<double> transposed(const Features& X, Column z, int n_threads) {
    check_length("z", z, X.rows->n_rows);
    auto out = new_array<double>(X.rows->n_columns);
    nb::gil_scoped_release release;
    transposed_matvec(*X.rows, z.data(), out.data(), n_threads);
    return out;
}

Out<double> squares(const Features& X, Column z, Column centre, int n_threads) {
    check_length("z", z, X.rows->n_rows);
    check_length("centre", centre, X.rows->n_columns);
    auto out = new_array<double>(X.rows->n_columns);
    nb::gil_scoped_release release;
    weighted_squares(*X.rows, z.data(), centre.data(), out.data(), n_threads);
    return out;
}

Out<bool> varying_within(const Features& X, In<int64_t> offsets) {
    check_offsets(offsets, static_cast<size_t>(X.rows->n_rows));
    auto out = new_array<bool>(X.rows->n_columns);
    nb::gil_scoped_release release;
    std::vector<uint8_t> varies(X.rows->n_columns, 0);
    X.rows->mark_varying(offsets.data(), static_cast<int64_t>(offsets.shape(0)) - 1, varies.data());
    std::copy(varies.begin(), varies.end(), out.data());
    return out;
}

using Evaluation = std::tuple<Out<double>, Out<double>, Out<double>>;

Evaluation evaluate_scores(QueryLoss& loss, Column s, bool values, int n_threads) {
    check_length("s", s, loss.n_docs());
    auto value = new_array<double>(values ? loss.n_queries() : 0);
    auto gradient = new_array<double>(loss.n_docs());
    auto curvature = new_array<double>(loss.n_docs());
    nb::gil_scoped_release release;
    evaluate(loss, s.data(), values ? value.data() : nullptr, gradient.data(), curvature.data(),
             n_threads);
    return {value, gradient, curvature};
}

Out<double> hessian_product(const ConvexLoss& loss, Column v, int n_threads) {
    check_length("v", v, loss.n_docs());
    auto out = new_array<double>(loss.n_docs());
    nb::gil_scoped_release release;
    product(loss, v.data(), out.data(), n_threads);
    return out;
}

void check_linear(const QueryLoss& loss, const Features& X, const Column& w) {
    check_length("w", w, X.rows->n_columns);
    if (X.rows->n_rows != loss.n_docs())
        throw nb::value_error("the feature matrix must have one row per document of the loss");
}

std::tuple<Out<double>, Out<double>, double, Out<double>> evaluate_linear(QueryLoss& loss,
                                                                          const Features& X,
                                                                          Column w, double shift,
                                                                          int n_threads) {
    check_linear(loss, X, w);
    auto value = new_array<double>(loss.n_queries());
    auto gradient = new_array<double>(X.rows->n_columns);
    auto curvature = new_array<double>(loss.n_docs());
    nb::gil_scoped_release release;
    const double total =
        linear_pass(loss, *X.rows, w.data(), shift, gradient.data(), n_threads,
                    [&](int64_t q, const double* s, double* z) {
                        loss.evaluate(q, s, value.data() + q, z, curvature.data() + loss.begin(q));
                    });
    return {value, gradient, total, curvature};
}

std::tuple<Out<double>, double> product_linear(const ConvexLoss& loss, const Features& X, Column u,
                                               double shift, int n_threads) {
    check_linear(loss, X, u);
    auto out = new_array<double>(X.rows->n_columns);
    nb::gil_scoped_release release;
    const double total =
        linear_pass(loss, *X.rows, u.data(), shift, out.data(), n_threads,
                    [&](int64_t q, const double* s, double* z) { loss.product(q, s, z); });
    return {out, total};
}

Out2<double> gram_matrix(In2<double> B, int n_threads) {
    const size_t d = B.shape(1);
    if (d % 8 != 0) throw nb::value_error("the number of columns must be a multiple of 8");
    auto out = new_matrix<double>(d, d);
    nb::gil_scoped_release release;
    gram(B.data(), static_cast<int64_t>(B.shape(0)), static_cast<int64_t>(d), out.data(),
         n_threads);
    return out;
}

Out2<double> cholesky_factor(In2<double> A) {
    const size_t d = A.shape(0);
    if (A.shape(1) != d) throw nb::value_error("the matrix must be square");
    auto out = new_matrix<double>(d, d);
    std::copy(A.data(), A.data() + d * d, out.data());
    if (!cholesky(out.data(), static_cast<int64_t>(d)))
        throw nb::value_error("the matrix must be positive definite");
    return out;
}

Out<double> solve_factored(In2<double> L, Column b) {
    check_length("b", b, static_cast<int64_t>(L.shape(0)));
    auto out = new_array<double>(b.shape(0));
    std::copy(b.data(), b.data() + b.shape(0), out.data());
    cholesky_solve(L.data(), static_cast<int64_t>(b.shape(0)), out.data());
    return out;
}

Out<double> shrink(In2<double> H, Column g, Column x, Column l, double exactness, int64_t rounds) {
    const int64_t d = static_cast<int64_t>(H.shape(0));
    if (H.shape(0) != H.shape(1)) throw nb::value_error("the matrix must be square");
    check_length("g", g, d);
    check_length("x", x, d);
    check_length("l", l, d);
    auto out = new_array<double>(d);
    std::fill(out.data(), out.data() + d, 0.0);
    nb::gil_scoped_release release;
    shrink_step(H.data(), g.data(), x.data(), l.data(), d, exactness, rounds, out.data());
    return out;
}

void bind_features(nb::module_& m) {
    const char* doc = "Rows of a feature matrix, dense or CSR, float32 or float64.";
    auto sparse = [](auto& c, auto data, auto index) {
        using T = decltype(data);
        using I = decltype(index);
        c.def(nb::new_(&sparse_features<T, I>), "data"_a.noconvert(), "columns"_a.noconvert(),
              "starts"_a.noconvert(), "n_columns"_a, "order"_a.noconvert().none() = nb::none());
    };
    auto features = nb::class_<Features>(m, "Features", doc);
    features
        .def(nb::new_(&dense_features<double>), "X"_a.noconvert(),
             "order"_a.noconvert().none() = nb::none())
        .def(nb::new_(&dense_features<float>), "X"_a.noconvert(),
             "order"_a.noconvert().none() = nb::none());
    sparse(features, double{}, int32_t{});
    sparse(features, double{}, int64_t{});
    sparse(features, float{}, int32_t{});
    sparse(features, float{}, int64_t{});
    features
        .def("scores", &scores, "w"_a.noconvert(), "n_threads"_a = 0, "quick"_a = false,
             "X w; the score of a row depends on that row alone, and is the same for a sparse row "
             "and its dense form unless `quick`.")
        .def("transposed", &transposed, "z"_a.noconvert(), "n_threads"_a = 0, "X^T z.")
        .def("squares", &squares, "z"_a.noconvert(), "centre"_a.noconvert(), "n_threads"_a = 0,
             "Per column the sum of z (x - centre)^2.")
        .def("varying_within", &varying_within, "offsets"_a.noconvert(),
             "Whether each column takes more than one value inside some query.");
}

}  // namespace

void bind_pairs(nb::module_& m) {
    bind_features(m);
    nb::class_<QueryLoss>(m, "QueryLoss", "A ranking loss whose labels are fixed.")
        .def("evaluate", &evaluate_scores, "s"_a.noconvert(), "values"_a = true, "n_threads"_a = 0,
             "Values per query, gradient and curvature per document at s.")
        .def("evaluate_linear", &evaluate_linear, "X"_a, "w"_a.noconvert(), "shift"_a = 0.0,
             "n_threads"_a = 0,
             "At the scores X w + shift: values per query, X^T gradient, sum of the gradient, "
             "curvature.");
    nb::class_<ConvexLoss, QueryLoss>(m, "ConvexLoss", "One whose Hessian is known.")
        .def("product", &hessian_product, "v"_a.noconvert(), "n_threads"_a = 0,
             "Hessian at the scores last evaluated, times v.")
        .def("product_linear", &product_linear, "X"_a, "u"_a.noconvert(), "shift"_a = 0.0,
             "n_threads"_a = 0, "X^T H (X u + shift) and the sum of H (X u + shift).");
    m.def("gram", &gram_matrix, "B"_a.noconvert(), "n_threads"_a = 0, "B^T B.");
    m.def("cholesky", &cholesky_factor, "A"_a.noconvert(), "L in the lower triangle, A = L L^T.");
    m.def("shrink_step", &shrink, "H"_a.noconvert(), "g"_a.noconvert(), "x"_a.noconvert(),
          "l"_a.noconvert(), "exactness"_a, "rounds"_a,
          "The step p that makes g.p + p.H.p / 2 + sum of l |x + p| smallest.");
    m.def("cholesky_solve", &solve_factored, "L"_a.noconvert(), "b"_a.noconvert(), "(L L^T)^-1 b.");
}
