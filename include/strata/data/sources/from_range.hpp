// The elements of a range, or of a function that generates them.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/data/core/checksum.hpp>
#include <strata/data/core/element.hpp>
#include <strata/data/core/function.hpp>
#include <strata/data/core/indexed_view.hpp>
#include <strata/data/core/rows_view.hpp>
#include <strata/data/core/stream.hpp>
#include <string_view>
#include <type_traits>
#include <utility>

namespace strata::data {

namespace detail {
template <class R>
concept indexable = std::ranges::random_access_range<const R> && std::ranges::sized_range<const R>;

/// Elements in memory, such as those of an array or of a std::deque; a view may compute them.
template <class R>
concept in_memory =
    std::ranges::contiguous_range<const R> ||
    (indexable<R> && std::is_lvalue_reference_v<std::ranges::range_reference_t<const R>> && !std::ranges::view<R>);

/// The elements of a random-access range.
template <indexable R>
class range_rows : public elements_of<range_rows<R>, std::ranges::range_value_t<const R>> {
 public:
  static constexpr row_properties properties{};

  explicit range_rows(R range) : range_(std::make_shared<const R>(std::move(range))) {}

  std::size_t size() const { return static_cast<std::size_t>(std::ranges::size(*range_)); }
  /// The checksum of numbers or texts in memory; other ranges may call the user's functions, other elements may have padding.
  std::uint64_t checksum() const
    requires in_memory<R> && (sample_like<std::ranges::range_value_t<const R>> ||
                              std::convertible_to<std::ranges::range_reference_t<const R>, std::string_view>)
  {
    if constexpr (sample_like<std::ranges::range_value_t<const R>>)
      return checksum_of(*this);
    else
      return checksum_of(*range_);
  }
  decltype(auto) get(sample_index i) const {
    return std::ranges::begin(*range_)[static_cast<std::ranges::range_difference_t<const R>>(i.row)];
  }

 private:
  std::shared_ptr<const R> range_;
};

/// The type in which elements of a range, or of a callable that returns std::optional, are stored.
template <class R>
struct kept_of {
  using type = stored_t<typename std::invoke_result_t<R&>::value_type>;
};
template <std::ranges::range R>
struct kept_of<R> {
  using type = stored_t<std::ranges::range_value_t<R>>;
};

/// Reads a range, and stores the position in it.
template <class R>
class range_reader {
 public:
  explicit range_reader(R range) : range_(std::move(range)), at_(std::ranges::begin(range_)) {}
  range_reader(const range_reader&) = delete;
  range_reader& operator=(const range_reader&) = delete;

  template <class E>
  bool next(E& e) {
    if (!std::exchange(fresh_, false)) ++at_;
    if (at_ == std::ranges::end(range_)) return false;
    if constexpr (std::assignable_from<E&, std::ranges::range_reference_t<R>>)
      e = *at_;
    else
      e = store(static_cast<const std::ranges::range_value_t<R>&>(*at_));
    return true;
  }

 private:
  R range_;
  std::ranges::iterator_t<R> at_;
  bool fresh_ = true;
};
/// A callable that returns std::optional: the next element, or std::nullopt at the end.
template <class R>
  requires(!std::ranges::range<R>)
class range_reader<R> {
 public:
  explicit range_reader(R next) : next_(std::move(next)) {}

  template <class E>
  bool next(E& e) {
    auto element = next_();
    if (!element) return false;
    if constexpr (std::assignable_from<E&, decltype(*std::move(element))>)
      e = *std::move(element);
    else
      e = store(std::as_const(*element));
    return true;
  }

 private:
  R next_;
};

/// The elements of the range that a function returns; it is called in each epoch.
template <class F>
class generator_source {
  using result = std::invoke_result_t<const F&>;

 public:
  using element = typename kept_of<result>::type;

  explicit generator_source(F f) : f_(std::move(f)) {}
  generator_source(generator_source&&) = default;
  generator_source& operator=(generator_source&&) = default;
  generator_source(const generator_source& other) : f_(other.f_) {}
  generator_source& operator=(const generator_source& other) {
    f_ = other.f_;
    reader_.reset();
    return *this;
  }

  void start(int) { reader_ = std::make_unique<range_reader<result>>((*f_)()); }
  bool next(element& e) { return reader_->next(e); }

 private:
  function<F> f_;
  std::unique_ptr<range_reader<result>> reader_;
};

/// A range in the form of the function of generator_source: lends it in each epoch.
template <class R>
struct borrowed {
  std::shared_ptr<R> range;

  struct all {  // clang 14 cannot compile std::ranges::subrange
    R* range;
    auto begin() const { return std::ranges::begin(*range); }
    auto end() const { return std::ranges::end(*range); }
  };
  all operator()() const { return {range.get()}; }
};

struct from_generator_fn {
  template <class F>
  auto operator()(F f) const {
    constexpr bool makes = requires(const F& g) { typename kept_of<std::invoke_result_t<const F&>>::type; };
    static_assert(makes,
                  "data::from_generator takes a function that returns a range, or a function that returns std::optional: it "
                  "is called at the beginning of each epoch");
    if constexpr (makes) {
      using element = typename generator_source<F>::element;
      constexpr bool can_wait = std::default_initializable<element> && std::movable<element>;
      static_assert(can_wait,
                    "elements of a stream are stored in memory that is reused: they need a default constructor and assignment");
      if constexpr (can_wait) return stream_view(generator_source<F>(std::move(f)));
    }
  }
};

struct from_range_fn {
  template <std::ranges::input_range R>
  auto operator()(R range) const {
    constexpr bool again = indexable<R> || std::ranges::forward_range<R>;
    static_assert(again,
                  "data::from_range takes a range that can be read in each epoch; for one that can be read only once, pass "
                  "a function: data::from_generator([] { return range; })");
    if constexpr (indexable<R>)
      return indexed_view("from_range", range_rows<R>(std::move(range)));
    else if constexpr (again)
      return from_generator_fn{}(borrowed<R>{std::make_shared<R>(std::move(range))});
  }
};
}  // namespace detail

/// `from_range(std::vector<record>{...})`, `from_range(std::views::iota(0, 100))`: the elements of a range, which is copied or
/// moved in; pass a view to borrow. Random access and sized if the range is; otherwise an input range, whose elements are stored
/// for as long as they are needed. Elements that are sample_like can be batched; others need a map first.
/// Throws strata_error if a random-access range is empty.
inline constexpr detail::from_range_fn from_range{};

/// `from_generator([] { return lines_of("log.txt"); })`: f is called at the beginning of each epoch and returns a range, or a
/// function that returns the next element as std::optional, which is empty at the end. Input range without a size.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#from_generator
inline constexpr detail::from_generator_fn from_generator{};

}  // namespace strata::data
