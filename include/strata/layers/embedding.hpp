// embedding<Vocabulary, Width>: a trained vector for each word or category.
#pragma once
#include <array>
#include <limits>
#include <strata/initializers/random.hpp>
#include <strata/layers/options.hpp>

namespace strata {

namespace reasons {
inline constexpr reason embedding_needs_at_least_one_row_and_one_column{
    "embedding<Vocabulary, Width> needs at least one row and one column"};
inline constexpr reason embedding_has_at_most_2_to_the_24_rows{
    "embedding has at most 16777216 (2^24) rows: float cannot represent all larger numbers"};
inline constexpr reason embedding_is_too_large{"the table of embedding must have fewer than 2147483632 numbers"};
inline constexpr reason embedding_takes_one_to_three_extents{"embedding takes one to three extents, since it adds one"};
}  // namespace reasons

namespace core {
struct embedding_settings {
  using owns_embeddings = void;
  int rows, width;

  constexpr expected_shape output_shape(shape in) const {
    // Sizes are rounded up to whole vectors.
    constexpr long most = std::numeric_limits<int>::max() - 15;
    if (rows < 1 || width < 1) return reasons::embedding_needs_at_least_one_row_and_one_column;
    if (rows > 1 << 24) return reasons::embedding_has_at_most_2_to_the_24_rows;
    if (long(rows) * width >= most) return reasons::embedding_is_too_large;
    if (in.rank() < 1 || in.rank() > 3) return reasons::embedding_takes_one_to_three_extents;
    shape out = in;
    out[in.rank()] = width;
    return out;
  }
};

/// y[i] = row x[i] of the table.  in: (...)  out: (..., width)  embeddings: (rows, width)
template <embedding_settings S>
struct lookup {
  static constexpr auto name = "lookup";
  static constexpr operation_traits traits{.looks_up = true};

  static constexpr expected_shape output_shape(shape in) { return S.output_shape(in); }
  static constexpr auto parameters(shape) {
    return std::array{parameter{"embeddings", {S.rows, S.width}, &info_of_initializer<random_uniform<>>}};
  }
};
}  // namespace core

/// Looks up a trained vector of `Width` elements for each of `Vocabulary` words or categories. Samples hold row indices, 0 to
/// Vocabulary - 1, as whole floats; the trainer refuses other values before the step.  in: (...)  out: (..., Width)
/// Options: embeddings_initializer, embeddings_regularizer.   https://keras.io/api/layers/core_layers/embedding
template <int Vocabulary, int Width, class... Options>
struct embedding : core::layer_options<core::embedding_settings, Options...> {
  static constexpr auto name = "embedding", class_name = "Embedding";
  using operations =
      core::type_list<core::lookup<embedding::configured(core::embedding_settings{.rows = Vocabulary, .width = Width})>>;
};

}  // namespace strata
