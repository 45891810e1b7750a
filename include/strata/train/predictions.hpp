// The result of predict: one row per sample.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/shape.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/program/row_tables.hpp>
#include <vector>

namespace strata {

/// One row of the network's output shape per sample; row(i) is a view of row i.
template <class T, shape Extents>
struct predictions {
  static constexpr shape extents = Extents;
  std::vector<T> values;

  std::size_t size() const { return values.size() / std::size_t(Extents.size()); }
  std::span<const T> row(std::size_t i) const {
    return std::span<const T>(values).subspan(i * std::size_t(Extents.size()), std::size_t(Extents.size()));
  }
};

namespace detail {
/// The largest number of samples in memory that are predicted at once.
inline constexpr int most_predicted_at_once = 1024;

/// Predicts samples in memory in pieces of at most that many: calls prepare(size of the largest piece), then predict(piece, its
/// place in `out`) for each. Throws strata_error for sizes that do not fit the network, and for an index that is no row
/// of an embedding.
template <class Program, class T>
void predict_in_pieces(std::span<const T> x, std::span<T> out, const auto& prepare, const auto& predict) {
  using network = typename Program::network;
  constexpr std::size_t most = most_predicted_at_once, in_size = std::size_t(network::input_shape.size()),
                        out_size = std::size_t(network::output_shape.size());
  const std::size_t count = x.size() / in_size;
  if (x.size() != count * in_size || out.size() != count * out_size)
    throw_error(
        {"predict: ", x.size(), " inputs and room for ", out.size(), " outputs, but a sample has ", in_size, " and ", out_size});
  prepare(int(std::min(count, most)));
  for (std::size_t at = 0; at < count; at += most) {
    const samples<T> piece{x.data() + at * in_size, int(std::min(count - at, most))};
    refuse_other_rows<Program>(piece, {0, piece.count}, sample_names(long(at)));
    predict(piece, out.data() + at * out_size);
  }
}
}  // namespace detail

}  // namespace strata
