// What data sets are made of.
#include <memory>
#include <ranges>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/array.hpp>
#include <strata/data/core/indexed_view.hpp>
#include <strata/data/formats/csv.hpp>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/elements.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/sample_weight.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/tag.hpp>
#include <strata/data/views/take.hpp>
#include <strata/data/views/unbatch.hpp>
#include <strata/data/views/window.hpp>
#include <string>
#include <utility>
#include <vector>

using namespace strata;
using namespace strata::core;

// case: data_arrays_are_no_view
// error: data::from_tensor_slices makes a view of x and y: put it around them
auto batches() {
#ifdef TWIN
  return data::from_tensor_slices(data::csv<3, 1>("houses.csv")) | data::batch<2>;
#else
  return data::csv<3, 1>("houses.csv") | data::batch<2>;
#endif
}

// case: data_batch_of_elements
// error: elements before data::batch are samples
auto batches() {
  auto words = data::from_range(std::vector<std::string>{"a", "to"});
#ifdef TWIN
  return words | data::map([](const std::string& word) { return float(word.size()); }) | data::batch<2>;
#else
  return words | data::batch<2>;
#endif
}

// case: data_batches_without_labels
// error: data::prefetch takes a view of batches: put it after batch
/// One batch of two numbers.
class two_numbers : public std::ranges::view_base {
 public:
  using value_type = samples<float>;
  static constexpr int batch_size = 2;
  static constexpr shape sample_shape{1}, target_shape{};
#ifdef TWIN
  static constexpr label_kind labels = label_kind::none;
#endif
  const samples<float>* begin() const { return &batch_; }
  const samples<float>* end() const { return &batch_ + 1; }

 private:
  static constexpr float x_[2] = {1, 2};
  samples<float> batch_{x_, 2};
};

void check() { two_numbers{} | data::prefetch(); }

// case: data_elements_of_batches
// error: data::elements takes a view of samples or elements: data::unbatch makes samples of batches
void check() {
#ifdef TWIN
  data::range(4) | data::batch<2> | data::unbatch | data::elements;
#else
  data::range(4) | data::batch<2> | data::elements;
#endif
}

// case: data_elements_without_visit
// error: rows of elements need visit.i, f., which calls f with element i
#include <strata/data/core/rows.hpp>  // first: a shorter message

/// Rows of strings.
struct name_rows {
  using element = std::string;
  static constexpr data::row_properties properties{};
  std::size_t size() const { return 3; }
#ifdef TWIN
  template <class F>
  decltype(auto) visit(data::sample_index i, F&& f) const {
    return f(std::to_string(i.row));
  }
#endif
};

void check() { data::indexed_view("names", name_rows{}); }

// case: data_sample_weight_numbers
// error: data::sample_weight takes a vector or span of float, a number for each sample, or a function of x, or of x and y
auto weighted() {
  auto set = data::from_tensor_slices(std::vector{1, 2, 3});
#ifdef TWIN
  return set | data::sample_weight(std::vector{1.0f, 2.0f, 0.5f});
#else
  return set | data::sample_weight(0.5);
#endif
}

// case: data_tag_of_numbers
// error: data::tag takes a view of samples, elements or batches
void check(std::vector<float> numbers) {
#ifdef TWIN
  data::from_tensor_slices(numbers) | data::tag("all");
#else
  numbers | data::tag("all");
#endif
}

// case: data_take_of_numbers
// error: data::take takes a view of samples, elements or batches
void check() {
#ifdef TWIN
  data::range(4) | data::take(2);
#else
  data::take(std::vector<int>(4), 2);
#endif
}

// case: data_unbatch_of_one
// error: data::unbatch takes batches whose source can be copied
using batches = decltype(data::range(4) | data::batch<2>);
struct with_a_file : batches {
#ifdef TWIN
  std::shared_ptr<int> file;
#else
  std::unique_ptr<int> file;
#endif
};

auto check(with_a_file view) { return std::move(view) | data::unbatch; }

// case: data_unbatch_of_samples
// error: data::unbatch takes a view of batches: put it after batch
void check() {
#ifdef TWIN
  data::range(4) | data::batch<2> | data::unbatch;
#else
  data::range(4) | data::unbatch;
#endif
}

// case: data_values_of_a_temporary
// error: (use of|call to) deleted (member )?function '?.*values
double check() {
  const std::vector<float> numbers{1, 2, 3};
  double sum = 0;
#ifdef TWIN
  const data::array<float, shape{3}> rows(numbers);
  for (const float v : rows.values()) sum += v;
#else
  for (const float v : data::array<float, shape{3}>(numbers).values()) sum += v;
#endif
  return sum;
}

// case: data_vector_of_vectors
// error: data::from_tensor_slices takes a data::array, .*; of rows that are vectors, make one flat vector
// whole program
#include <strata/strata.hpp>

using net = sequential<input<4>, dense<10, softmax>>;
void train() {
  const std::vector<std::vector<float>> x;
  const std::vector<std::array<float, 4>> rows;
  const std::vector<int> y;
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::from_tensor_slices(rows, y) | data::batch<32>, epochs(1));
#else
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
#endif
}

// case: data_window_of_elements
// error: data::window takes a view of samples: put it before batch, and after the map that makes samples
auto names() { return data::from_range(std::vector<std::string>{"a"}); }

void check() {
#ifdef TWIN
  names() | data::map([](const std::string& s) { return int(s.size()); }) | data::window<1>();
#else
  data::window<1>(names());
#endif
}

// case: data_window_of_shuffled
// error: data::window takes a random-access view: put it before shuffle, filter, repeat and shard
void check() {
#ifdef TWIN
  data::range(9) | data::window<2>() | data::shuffle(9);
#else
  data::window<2>(data::range(9) | data::shuffle(9));
#endif
}

// case: data_window_of_volumes
// error: data::window makes samples of shape .Size, S[.]+., which has at most four extents
template <shape S>
auto x() {
  return data::from_tensor_slices(data::array<float, S>(std::vector<float>(32)));
}

void check() {
#ifdef TWIN
  x<shape{2, 2, 2}>() | data::window<2>();
#else
  data::window<2>(x<shape{2, 2, 2, 1}>());
#endif
}
