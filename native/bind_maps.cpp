#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <map>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "maps.hpp"

namespace {

using namespace rankwise;
using namespace nb::literals;

template <class Value>
Value named(const char* what, const std::map<std::string, Value>& values, const std::string& name) {
    const auto found = values.find(name);
    if (found == values.end())
        throw nb::value_error(("unknown " + std::string(what) + " '" + name + "'").c_str());
    return found->second;
}

Sum sum_named(const std::string& name) {
    return named<Sum>("sum",
                      {{"product", Sum::kProduct},
                       {"square", Sum::kSquare},
                       {"absolute", Sum::kAbsolute},
                       {"chi_square", Sum::kChiSquare}},
                      name);
}

Shape shape_named(const std::string& name) {
    return named<Shape>("shape",
                        {{"none", Shape::kNone},
                         {"polynomial", Shape::kPolynomial},
                         {"power", Shape::kPower},
                         {"matern1", Shape::kMatern1},
                         {"matern3", Shape::kMatern3},
                         {"matern5", Shape::kMatern5},
                         {"cosine", Shape::kCosine},
                         {"cosine_sine", Shape::kCosineSine}},
                        name);
}

template <class T, class S>
void kernel_into(const Points<T>& points, In2<S> X, Out2<T> out, const std::string& sum,
                 const std::string& shape, double scale, double shift, int degree,
                 std::optional<In<T>> offset, int n_threads) {
    Finish<T> f;
    f.shape = shape_named(shape);
    f.scale = static_cast<T>(scale);
    f.shift = static_cast<T>(shift);
    f.degree = degree;
    const Sum kind = sum_named(sum);
    const auto n = static_cast<size_t>(points.n()), d = static_cast<size_t>(points.d());
    const size_t columns = f.shape == Shape::kCosineSine ? 2 * n : n;
    if (X.shape(1) != d) throw nb::value_error("X must have as many columns as the points");
    if (out.shape(0) != X.shape(0) || out.shape(1) != columns)
        throw nb::value_error("out must have a row per row of X and a column per value");
    if ((f.shape == Shape::kCosine) != offset.has_value())
        throw nb::value_error("offset goes with the shape 'cosine'");
    if (offset) {
        if (offset->shape(0) != n) throw nb::value_error("offset must have one entry per point");
        f.offset = offset->data();
    }
    nb::gil_scoped_release release;
    kernel_matrix(X.data(), static_cast<int64_t>(X.shape(0)), points, kind, Fill::kAll, f,
                  out.data(), n_threads);
}

template <class T>
void multiply_into(const Points<T>& points, In2<T> X, Out2<T> out, bool upper, int n_threads) {
    if (X.shape(1) != static_cast<size_t>(points.d()))
        throw nb::value_error("X must have as many columns as the points");
    if (out.shape(0) != X.shape(0) || out.shape(1) != static_cast<size_t>(points.n()))
        throw nb::value_error("out must have a row per row of X and a column per point");
    nb::gil_scoped_release release;
    kernel_matrix(X.data(), static_cast<int64_t>(X.shape(0)), points, Sum::kProduct,
                  upper ? Fill::kUpper : Fill::kAll, Finish<T>{}, out.data(), n_threads);
}

template <class T>
void bind_points(nb::module_& m, const char* name) {
    auto points = nb::class_<Points<T>>(m, name, "Points that rows are compared with.");
    points.def(
        "__init__",
        [](Points<T>* self, In2<double> p) {
            new (self) Points<T>(p.data(), static_cast<int64_t>(p.shape(0)),
                                 static_cast<int64_t>(p.shape(1)));
        },
        "points"_a.noconvert());
    const char* doc =
        "Function `shape` of the `sum` over the features, of every row of X and every point.";
    points.def("kernel", &kernel_into<T, double>, "X"_a.noconvert(), "out"_a.noconvert(), "sum"_a,
               "shape"_a, "scale"_a = 1.0, "shift"_a = 0.0, "degree"_a = 1,
               "offset"_a.noconvert() = nb::none(), "n_threads"_a = 0, doc);
    points.def("kernel", &kernel_into<T, float>, "X"_a.noconvert(), "out"_a.noconvert(), "sum"_a,
               "shape"_a, "scale"_a = 1.0, "shift"_a = 0.0, "degree"_a = 1,
               "offset"_a.noconvert() = nb::none(), "n_threads"_a = 0, doc);
    points.def("multiply", &multiply_into<T>, "X"_a.noconvert(), "out"_a.noconvert(),
               "upper"_a = false, "n_threads"_a = 0,
               "Products of every row of X and every point, which may be the columns of an upper "
               "triangular matrix.");
}

}  // namespace

void bind_maps(nb::module_& m) {
    bind_points<double>(m, "Points");
    bind_points<float>(m, "Points32");
}
