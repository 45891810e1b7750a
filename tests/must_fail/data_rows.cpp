// Rows, streams and views of one's own.
#include <iterator>
#include <ranges>
#include <strata/data/core/addressable.hpp>
#include <strata/data/core/indexed_view.hpp>
#include <strata/data/core/stream.hpp>
#include <strata/data/formats/csv.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/shuffle.hpp>
#include <utility>

using namespace strata;

// case: data_loop_over_read_csv
// error: read_csv returns columns: auto .a, b. = read_csv<int, float>.path.; a loop goes over csv_rows
float sum() {
  float all = 0;
#ifdef TWIN
  for (const auto& [price, count] : data::csv_rows<float, int>("fruit.csv")) all += price * float(count);
#else
  for (const auto& [price, count] : data::read_csv<float, int>("fruit.csv")) all += price * float(count);
#endif
  return all;
}

// case: data_rows_misspelt_property
// error: is_randm
#include <strata/data/core/rows.hpp>  // first: a shorter message

/// Rows of one number each.
struct counting_rows {
  using value_type = float;
#ifdef TWIN
  static constexpr data::row_properties properties{.is_random = true};
#else
  static constexpr data::row_properties properties{.is_randm = true};
#endif
  static constexpr shape sample_shape{1}, target_shape{};
  static constexpr label_kind labels = label_kind::none;
  std::size_t size() const { return 3; }
  template <class T, class Then>
  void write(data::sample_index i, data::sample_index, data::sample_place<T> to, Then then) const {
    *to.x = then(T(i.row));
  }
};

void check() { data::indexed_view("counting", counting_rows{}); }

// case: data_rows_without_a_shape
// error: rows of samples need the constants sample_shape, labels and target_shape
#include <strata/data/core/rows.hpp>  // first: a shorter message

/// Rows of one number each.
struct counting_rows {
  using value_type = float;
  static constexpr data::row_properties properties{};
#ifdef TWIN
  static constexpr shape sample_shape{1};
#endif
  static constexpr shape target_shape{};
  static constexpr label_kind labels = label_kind::none;
  std::size_t size() const { return 3; }
  template <class T, class Then>
  void write(data::sample_index i, data::sample_index, data::sample_place<T> to, Then then) const {
    *to.x = then(T(i.row));
  }
};

void check() { data::indexed_view("counting", counting_rows{}); }

// case: data_rows_without_properties
// error: rows need .static constexpr data::row_properties properties.
#include <strata/data/core/rows.hpp>  // first: a shorter message

/// Rows of one number each.
struct counting_rows {
  using value_type = float;
#ifdef TWIN
  static constexpr data::row_properties properties{};
#endif
  static constexpr shape sample_shape{1}, target_shape{};
  static constexpr label_kind labels = label_kind::none;
  std::size_t size() const { return 3; }
  template <class T, class Then>
  void write(data::sample_index i, data::sample_index, data::sample_place<T> to, Then then) const {
    *to.x = then(T(i.row));
  }
};

void check() { data::indexed_view("counting", counting_rows{}); }

// case: data_rows_without_write
// error: rows of samples need write.i, ahead, place, then., which writes sample i into a batch
#include <strata/data/core/rows.hpp>  // first: a shorter message

/// Rows of one number each.
struct counting_rows {
  using value_type = float;
  static constexpr data::row_properties properties{};
  static constexpr shape sample_shape{1}, target_shape{};
  static constexpr label_kind labels = label_kind::none;
  std::size_t size() const { return 3; }
#ifdef TWIN
  template <class T, class Then>
  void write(data::sample_index i, data::sample_index, data::sample_place<T> to, Then then) const {
    *to.x = then(T(i.row));
  }
#endif
};

void check() { data::indexed_view("counting", counting_rows{}); }

// case: data_stream_without_next
// error: the source of a stream_view is copyable and has .element., start.epoch., and next.element., which returns bool
/// 3, 2, 1.
class countdown {
  int left_ = 0;

 public:
  using element = int;
  void start(int) { left_ = 3; }
#ifdef TWIN
  bool next(int& e) { return (e = left_--) > 0; }
#endif
};

void check() { data::stream_view(countdown{}); }

// case: data_view_without_rows
// error: data::shuffle takes a view of samples or elements: put it before batch
/// A view of the rows of another one, in reverse order.
template <data::detail::addressable V>
class reverse_view : public std::ranges::view_base {
 public:
  static constexpr data::view_properties properties{};

  explicit reverse_view(V base) : base_(base) {}
  auto begin() const { return std::reverse_iterator(base_.end()); }
  auto end() const { return std::reverse_iterator(base_.begin()); }
#ifdef TWIN
  decltype(auto) rows() const { return base_.rows(); }
#endif
  void set_epoch(int epoch) { base_.set_epoch(epoch); }

 private:
  V base_;
};

void check() { reverse_view(data::range(4)) | data::shuffle(4); }

// case: data_view_without_set_epoch
// error: a view of samples has set_epoch.int., which passes the epoch on
template <class V>
struct same : std::ranges::view_base {
  static constexpr data::view_properties properties{};
  V base;
  explicit same(V v) : base(std::move(v)) {}
  auto begin() { return base.begin(); }
  auto end() { return base.end(); }
  auto rows() const { return base.rows(); }
#ifdef TWIN
  void set_epoch(int epoch) { base.set_epoch(epoch); }
#endif
};

auto check() {
  auto numbers = data::range(4) | data::map([](auto x) { return float(x); });
  return same(numbers) | data::batch<2>;
}
