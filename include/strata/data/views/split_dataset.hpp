// Two parts of a data set, such as training and validation.
#pragma once
#include <algorithm>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/random.hpp>
#include <strata/base/random_draws.hpp>
#include <strata/base/standard_ranges.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/addressable.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/index_iterator.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::data {

/// A number of samples, or a fraction of all: 1000 or 0.8.
class split_size {
 public:
  template <std::integral I>
    requires(!std::same_as<I, bool> && !std::same_as<I, char>)
  constexpr split_size(I count)
      : count_(std::cmp_less(count, std::numeric_limits<std::int64_t>::max()) ? static_cast<std::int64_t>(count)
                                                                              : std::numeric_limits<std::int64_t>::max()) {}
  constexpr split_size(std::floating_point auto fraction) : fraction_(double(fraction)), is_fraction_(true) {}

  /// The number of samples for a data set of n samples, rounded as in Keras. Throws strata_error for a fraction outside
  /// (0, 1), and for a number of samples below 1 or not below n.
  std::size_t of(std::size_t n) const {
    if (is_fraction_ && !(fraction_ > 0 && fraction_ < 1))
      throw_error({"split_dataset: a fraction must be above 0 and below 1, not ", fraction_});
    if (!is_fraction_ && (count_ < 1 || static_cast<std::uint64_t>(count_) >= n))
      throw_error({"split_dataset: a part of ", count_, " samples, but the data set has ", n});
    return static_cast<std::size_t>(is_fraction_ ? std::nearbyint(fraction_ * double(n)) : double(count_));
  }

 private:
  std::int64_t count_ = 0;
  double fraction_ = 0;
  bool is_fraction_ = false;
};

/// Names and defaults are those of Keras; a missing size is the remainder.
struct split_options {
  std::optional<split_size> left_size = {}, right_size = {};
  bool shuffle = false;    // assigns samples to parts at random, in random order
  std::uint64_t seed = 0;  // determines that choice
};

namespace detail {
/// The elements of a view at some places, in the order of the places.
template <class Base>
struct chosen_places : index_iterator<chosen_places<Base>> {
  using typename index_iterator<chosen_places>::difference_type;

  Base first{};
  const std::uint32_t* at = nullptr;

  sample_index operator*() const { return first[static_cast<std::iter_difference_t<Base>>(*at)]; }
  chosen_places& operator+=(difference_type n) {
    at += n;
    return *this;
  }
  friend difference_type operator-(const chosen_places& a, const chosen_places& b) { return a.at - b.at; }
  friend bool operator==(const chosen_places& a, const chosen_places& b) { return a.at == b.at; }
  friend auto operator<=>(const chosen_places& a, const chosen_places& b) { return a.at <=> b.at; }
};
}  // namespace detail

/// A part of a data set. Random access and sized. Copies share the places.
template <detail::addressable V>
class part_view : public std::ranges::view_base {
 public:
  static constexpr view_properties properties{};

  part_view(V base, std::shared_ptr<const std::vector<std::uint32_t>> places, std::size_t first, std::size_t count,
            std::string how)
      : base_(std::move(base)), places_(std::move(places)), first_(first), count_(count), how_(std::move(how)) {}

  auto begin() const {
    return detail::chosen_places<std::ranges::iterator_t<const V>>{{}, std::ranges::begin(base_), places_->data() + first_};
  }
  auto end() const { return begin() + static_cast<std::ptrdiff_t>(count_); }
  std::size_t size() const { return count_; }
  decltype(auto) rows() const { return base_.rows(); }
  void set_epoch(int epoch) { base_.set_epoch(epoch); }
  std::string order() const { return how_; }
  const V& base() const { return base_; }
  V& base() { return base_; }

 private:
  V base_;
  std::shared_ptr<const std::vector<std::uint32_t>> places_;
  std::size_t first_, count_;
  std::string how_;
};

/// The two parts: `auto [train, test] = data::split_dataset(...)`.
template <detail::addressable V>
struct split {
  part_view<V> left, right;
};

/// The result of split_dataset after its error, and for a data set that was refused before.
struct refused_split {
  refused_view left, right;
};

namespace detail {
/// The places 0 to n - 1, in an order that seed and salt determine if they are shuffled. Throws strata_error, which
/// begins with `stage`, if there are too many.
inline std::vector<std::uint32_t> places_to_divide(const char* stage, std::size_t n, bool shuffle, std::uint64_t seed,
                                                   std::uint64_t salt) {
  if (n > std::numeric_limits<std::uint32_t>::max()) throw_error({stage, ": ", n, " samples are too many"});
  std::vector<std::uint32_t> places(n);
  std::iota(places.begin(), places.end(), std::uint32_t{0});
  if (shuffle) strata::detail::random_draws(philox{seed}.fork(salt), 0).shuffle(places);
  return places;
}
/// "split_dataset(left 70 of 100, seed 7)"
inline std::string division_text(std::string what, bool shuffle, std::uint64_t seed) {
  if (shuffle) what += strata::detail::text_of({", seed ", seed});
  return what + ")";
}

struct split_dataset_fn {
  refused_split operator()(refused_view, const split_options&) const { return {}; }
  template <class V>
  auto operator()(V view, const split_options& options) const {
    constexpr bool fits = addressable<V>;
    static_assert(fits, "data::split_dataset takes a view with random access: put it right after the data, before shuffle");
    if constexpr (fits) {
      const std::size_t n = view.size();
      if (!options.left_size && !options.right_size) throw_error("split_dataset: give left_size, right_size or both");
      auto places = std::make_shared<std::vector<std::uint32_t>>(
          places_to_divide("split_dataset", n, options.shuffle, options.seed, 0x73706C6974));  // "split"
      const std::size_t left = options.left_size ? options.left_size->of(n) : n - options.right_size->of(n),
                        right = options.right_size ? options.right_size->of(n) : n - left;
      if (left == 0 || right == 0 || left + right > n)
        throw_error({"split_dataset: parts of ", left, " and ", right, " samples, but the data set has ", n});
      const auto part = [&](const char* side, std::size_t first, std::size_t count) {
        return part_view<V>(view, places, first, count,
                            division_text(strata::detail::text_of({"split_dataset(", side, " ", count, " of ", n}),
                                          options.shuffle, options.seed));
      };
      return split<V>{part("left", 0, left), part("right", left, right)};
    } else {
      return refused_split{};
    }
  }
};
}  // namespace detail

/// `auto [train, test] = data::split_dataset(all, {.left_size = 0.8, .shuffle = true, .seed = 7})`: two parts without a sample in
/// common, the same in every run and on every machine. Sizes are numbers of samples, or fractions. Random access and sized.
/// Throws strata_error if a part would be empty. https://keras.io/api/utils/python_utils/#split_dataset-function
inline constexpr detail::split_dataset_fn split_dataset{};

}  // namespace strata::data
