// The folds of a cross validation.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/addressable.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/views/split_dataset.hpp>
#include <vector>

namespace strata::data {

struct k_fold_options {
  bool shuffle = false;    // assigns samples to folds at random, in random order
  std::uint64_t seed = 0;  // determines that choice
};

namespace detail {
struct k_fold_fn {
  std::vector<refused_split> operator()(refused_view, std::size_t, const k_fold_options& = {}) const { return {}; }
  template <class V>
  auto operator()(V view, std::size_t folds, const k_fold_options& options = {}) const {
    constexpr bool fits = addressable<V>;
    static_assert(fits, "data::k_fold takes a view with random access: put it right after the data, before shuffle");
    if constexpr (fits) {
      const std::size_t n = view.size();
      if (folds < 2 || folds > n)
        throw_error({"k_fold: ", folds, " folds of ", n, " samples: there must be at least 2, and none may be empty"});
      const auto once = places_to_divide("k_fold", n, options.shuffle, options.seed, 0x6B666F6C64);  // "kfold"
      auto places = std::make_shared<std::vector<std::uint32_t>>(once);  // twice, so that the samples around a fold are one part
      places->insert(places->end(), once.begin(), once.end());
      std::vector<split<V>> all;
      for (std::size_t k = 0; k < folds; ++k) {
        const std::size_t begin = k * n / folds, end = (k + 1) * n / folds;
        const auto part = [&](const char* which, std::size_t first, std::size_t count) {
          return part_view<V>(
              view, places, first, count,
              division_text(strata::detail::text_of({"k_fold(", which, ' ', k, " of ", folds, ", ", n, " samples"}),
                            options.shuffle, options.seed));
        };
        all.push_back({part("all but", end, n - (end - begin)), part("fold", begin, end - begin)});
      }
      return all;
    } else {
      return std::vector<refused_split>{};
    }
  }
};
}  // namespace detail

/// `for (const auto& [train, test] : data::k_fold(all, 5, {.shuffle = true, .seed = 7}))`: each sample is in `test` once, and in
/// `train` otherwise. The folds differ by one sample at most, and are the same in every run and on every machine; only indices
/// are kept. Random access and sized. Throws strata_error for fewer than 2 folds, and for more than samples.
/// https://scikit-learn.org/stable/modules/generated/sklearn.model_selection.KFold.html
inline constexpr detail::k_fold_fn k_fold{};

}  // namespace strata::data
