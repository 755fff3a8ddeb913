// Scores of feed-forward networks, row by row.
//
// Each output of a layer is its bias plus the inputs times their weights, added in the order of the
// inputs. Four rows share the loads of a weight but no arithmetic, so the score of a row depends on
// that row alone, to the last bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "lanes.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace rankwise {

enum class Activation : int { relu, tanh, sigmoid, elu, gelu, count };

inline void activate(Activation kind, double* values, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        const double v = values[i];
        switch (kind) {
            case Activation::relu:
                values[i] = v > 0 ? v : 0;
                break;
            case Activation::tanh:
                values[i] = std::tanh(v);
                break;
            case Activation::sigmoid:
                values[i] = 1 / (1 + std::exp(-v));
                break;
            case Activation::elu:
                values[i] = v > 0 ? v : std::expm1(v);
                break;
            default:
                values[i] = 0.5 * v * (1 + std::erf(v * 0.7071067811865476));
        }
    }
}

// One layer. Weights are stored input by input; outputs are padded with zeros to whole lanes.
struct Layer {
    int64_t inputs, outputs, padded;
    std::vector<double> weight, bias;

    Layer(const double* w, const double* b, int64_t n_in, int64_t n_out)
        : inputs(n_in),
          outputs(n_out),
          padded((n_out + 7) / 8 * 8),
          weight(static_cast<size_t>(n_in * padded)),
          bias(static_cast<size_t>(padded)) {
        for (int64_t k = 0; k < n_in; ++k)
            std::copy(w + k * n_out, w + (k + 1) * n_out, weight.begin() + k * padded);
        std::copy(b, b + n_out, bias.begin());
    }
};

constexpr int64_t kRowsAtOnce = 4;

// out[r] = bias + in[r] * weight for four rows that lie `stride` numbers apart.
RANKWISE_CLONES inline void apply_layer(const Layer& layer, const double* in, int64_t in_stride,
                                        double* out, int64_t out_stride) {
    for (int64_t j = 0; j < layer.padded; j += 8) {
        Lanes sums[kRowsAtOnce], column;
        load(layer.bias.data() + j, column);
        for (auto& row : sums) row = column;
        const double* w = layer.weight.data() + j;
        for (int64_t k = 0; k < layer.inputs; ++k, w += layer.padded) {
            load(w, column);
            for (int64_t r = 0; r < kRowsAtOnce; ++r) sums[r] += column * in[r * in_stride + k];
        }
        for (int64_t r = 0; r < kRowsAtOnce; ++r) store(sums[r], out + r * out_stride + j);
    }
}

// score[i] of each row of X (n, d): layers with the activation between them; the last has one
// output.
inline void network_scores(const double* X, int64_t n, int64_t d, const std::vector<Layer>& layers,
                           Activation kind, double* score, int n_threads) {
    int64_t width = d, products = 0;
    for (const Layer& layer : layers) {
        width = std::max(width, layer.padded);
        products += layer.inputs * layer.padded;
    }
    const int64_t blocks = (n + kRowsAtOnce - 1) / kRowsAtOnce;
    parallel_for(blocks, n * products, n_threads, [&](int64_t block) {
        thread_local std::vector<double> memory;
        memory.assign(static_cast<size_t>(2 * kRowsAtOnce * width), 0.0);
        double *in = memory.data(), *out = in + kRowsAtOnce * width;
        const int64_t first = block * kRowsAtOnce, rows = std::min(kRowsAtOnce, n - first);
        for (int64_t r = 0; r < rows; ++r)
            std::copy(X + (first + r) * d, X + (first + r + 1) * d, in + r * width);
        for (size_t l = 0; l < layers.size(); ++l) {
            apply_layer(layers[l], in, width, out, width);
            if (l + 1 < layers.size())
                for (int64_t r = 0; r < rows; ++r)
                    activate(kind, out + r * width, layers[l].outputs);
            std::swap(in, out);
        }
        for (int64_t r = 0; r < rows; ++r) score[first + r] = in[r * width];
    });
}

}  // namespace rankwise
