// How labels, weights and pairs reach the constructors of the losses.
#pragma once

#include <nanobind/stl/optional.h>

#include <optional>
#include <string>

#include "arrays.hpp"
#include "losses.hpp"
#include "pairs_given.hpp"

namespace rankwise {

using Column = In<double>;

inline void check_length(const char* name, const Column& column, int64_t n) {
    if (static_cast<int64_t>(column.shape(0)) != n)
        throw nb::value_error((std::string(name) + " must have " + std::to_string(n) +
                               " entries, got " + std::to_string(column.shape(0)))
                                  .c_str());
}

// Labels, offsets and weights, checked, handed to the constructor of a loss.
template <class Loss, class... Options>
Loss* new_loss(Column y, In<int64_t> offsets, std::optional<Column> weight, Options... options) {
    check_offsets(offsets, y.shape(0));
    if (weight) check_length("weight", *weight, static_cast<int64_t>(y.shape(0)));
    nb::gil_scoped_release release;
    return new Loss(y.data(), offsets.data(), static_cast<int64_t>(offsets.shape(0)) - 1,
                    weight ? weight->data() : nullptr, options...);
}

// Pairs that are given, checked: rows sorted by query, each pair inside one query.
inline PairColumns check_pairs(const In<int64_t>& offsets, const std::optional<Column>& weight,
                               const In<int64_t>& winner, const In<int64_t>& loser,
                               const std::optional<Column>& pair_weight,
                               const std::optional<Column>& target) {
    const int64_t n_docs = offsets.shape(0) > 0 ? offsets.data()[offsets.shape(0) - 1] : 0;
    const int64_t n = static_cast<int64_t>(winner.shape(0));
    check_offsets(offsets, static_cast<size_t>(n_docs));
    if (weight) check_length("weight", *weight, n_docs);
    if (pair_weight) check_length("pair_weight", *pair_weight, n);
    if (target) check_length("target", *target, n);
    if (loser.shape(0) != winner.shape(0)) throw nb::value_error("winner and loser must pair up");
    const int64_t* begin = offsets.data();
    const int64_t* end = begin + offsets.shape(0);
    for (int64_t p = 0; p < n; ++p) {
        const int64_t i = winner.data()[p], j = loser.data()[p];
        const bool rows = i >= 0 && i < n_docs && j >= 0 && j < n_docs;
        if (!rows || std::upper_bound(begin, end, i) != std::upper_bound(begin, end, j) ||
            (p > 0 && i < winner.data()[p - 1]))
            throw nb::value_error("pairs must be sorted by winner, each inside one query");
    }
    return {winner.data(), loser.data(), pair_weight ? pair_weight->data() : nullptr,
            target ? target->data() : nullptr, n};
}

template <class PairLoss, class... Options>
GivenPairsLoss<PairLoss>* new_pairs(In<int64_t> offsets, std::optional<Column> weight,
                                    In<int64_t> winner, In<int64_t> loser,
                                    std::optional<Column> pair_weight, std::optional<Column> target,
                                    Options... options) {
    const PairColumns pairs = check_pairs(offsets, weight, winner, loser, pair_weight, target);
    nb::gil_scoped_release release;
    return new GivenPairsLoss<PairLoss>(offsets.data(), static_cast<int64_t>(offsets.shape(0)) - 1,
                                        weight ? weight->data() : nullptr, pairs,
                                        PairLoss{options...});
}

template <class Loss, class Base, class... Options, class... Args>
void bind_loss(nb::module_& m, const char* name, const Args&... options) {
    using namespace nb::literals;
    nb::class_<Loss, Base>(m, name).def(nb::new_(&new_loss<Loss, Options...>), "y"_a.noconvert(),
                                        "offsets"_a.noconvert(), "weight"_a.noconvert().none(),
                                        options...);
}

template <class PairLoss, class... Options, class... Args>
void bind_given(nb::module_& m, const char* name, const Args&... options) {
    using namespace nb::literals;
    nb::class_<GivenPairsLoss<PairLoss>, typename PairLoss::Base>(m, name).def(
        nb::new_(&new_pairs<PairLoss, Options...>), "offsets"_a.noconvert(),
        "weight"_a.noconvert().none(), "winner"_a.noconvert(), "loser"_a.noconvert(),
        "pair_weight"_a.noconvert().none(), "target"_a.noconvert().none(), options...);
}

}  // namespace rankwise
