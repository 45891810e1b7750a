// The parts of a cross validation.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <strata/base/error.hpp>
#include <strata/base/random.hpp>
#include <strata/base/random_draws.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/addressable.hpp>
#include <strata/data/views/split_dataset.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::data {

struct k_fold_options {
  bool shuffle = false;    // which samples are in which fold, and their order, is random
  std::uint64_t seed = 0;  // decides it
};

namespace detail {
struct k_fold_fn {
  template <class V>
  auto operator()(V view, std::size_t folds, const k_fold_options& options = {}) const {
    constexpr bool fits = addressable<V>;
    static_assert(fits, "data::k_fold takes a view with random access: put it right after the data, before shuffle");
    std::vector<split<V>> all;
    if constexpr (fits) {
      const std::size_t n = view.size();
      if (folds < 2 || folds > n) throw_error({"k_fold: ", folds, " folds of ", n, " samples: 2 at least, and none is empty"});
      if (n > std::numeric_limits<std::uint32_t>::max()) throw_error({"k_fold: ", n, " samples are too many"});
      std::vector<std::uint32_t> once(n);
      std::iota(once.begin(), once.end(), std::uint32_t{0});
      if (options.shuffle) strata::detail::random_draws(philox{options.seed}.fork(0x6B666F6C64), 0).shuffle(once);  // "kfold"
      auto places = std::make_shared<std::vector<std::uint32_t>>(once);  // twice, so that what lies around a fold is one part
      places->insert(places->end(), once.begin(), once.end());
      for (std::size_t k = 0; k < folds; ++k) {
        const std::size_t begin = k * n / folds, end = (k + 1) * n / folds;
        const auto part = [&](const char* which, std::size_t first, std::size_t count) {
          std::string how = strata::detail::text_of({"k_fold(", which, ' ', k, " of ", folds, ", ", n, " samples"});
          if (options.shuffle) how += strata::detail::text_of({", seed ", options.seed});
          return part_view<V>(view, places, first, count, how + ")");
        };
        all.push_back({part("all but", end, n - (end - begin)), part("fold", begin, end - begin)});
      }
    }
    return all;
  }
};
}  // namespace detail

/// `for (const auto& [train, test] : data::k_fold(all, 5, {.shuffle = true, .seed = 7}))`: each sample is in `test` once, and in
/// `train` otherwise. The folds differ by one sample at most, and are the same in every run and on every machine; only indices
/// are kept. Random access and sized. Throws strata::error for less than 2 folds, and for more than samples.
/// https://scikit-learn.org/stable/modules/generated/sklearn.model_selection.KFold.html
inline constexpr detail::k_fold_fn k_fold{};

}  // namespace strata::data
