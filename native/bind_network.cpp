#include "arrays.hpp"
#include "network.hpp"

namespace {

using namespace rankwise;
using namespace nb::literals;

Out<double> scores(In2<double> X, In<double> weights, In<int64_t> sizes, int activation,
                   int n_threads) {
    const size_t n_layers = sizes.shape(0) > 0 ? sizes.shape(0) - 1 : 0;
    const int64_t* size = sizes.data();
    const int64_t available = static_cast<int64_t>(weights.shape(0));
    if (n_layers == 0 || size[0] != static_cast<int64_t>(X.shape(1)) || size[n_layers] != 1)
        throw nb::value_error("sizes must start with the features and end with one output");
    if (activation < 0 || activation >= static_cast<int>(Activation::count))
        throw nb::value_error("activation must be one of the known ones");
    std::vector<Layer> layers;
    int64_t used = 0;
    for (size_t l = 0; l < n_layers; ++l) {
        const int64_t in = size[l], out = size[l + 1];
        // No layer can be larger than the weights given, so the products below cannot overflow.
        if (in < 1 || out < 1 || in > available || out > available / in ||
            in * out + out > available - used)
            throw nb::value_error("weights must hold a matrix and a bias for each layer");
        layers.emplace_back(weights.data() + used, weights.data() + used + in * out, in, out);
        used += in * out + out;
    }
    if (used != available)
        throw nb::value_error("weights must hold a matrix and a bias for each layer");
    auto out = new_array<double>(X.shape(0));
    {
        nb::gil_scoped_release release;
        network_scores(X.data(), static_cast<int64_t>(X.shape(0)), size[0], layers,
                       static_cast<Activation>(activation), out.data(), n_threads);
    }
    return out;
}

}  // namespace

void bind_network(nb::module_& m) {
    m.def("network_scores", &scores, "X"_a.noconvert(), "weights"_a.noconvert(),
          "sizes"_a.noconvert(), "activation"_a, "n_threads"_a = 0,
          "Score of each row: layers of the given sizes, each a matrix and a bias in weights.");
}
