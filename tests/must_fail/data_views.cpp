// Views of data sets.
#include <strata/data/image/random_flip.hpp>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/apply.hpp>
#include <strata/data/views/auto_shard.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/cache.hpp>
#include <strata/data/views/concatenate.hpp>
#include <strata/data/views/enumerate.hpp>
#include <strata/data/views/flat_map.hpp>
#include <strata/data/views/interleave.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/sample_weight.hpp>
#include <strata/data/views/shard.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/take.hpp>
#include <strata/data/views/zip.hpp>
#include <vector>

using namespace strata;

// case: data_apply_function
// error: the function of data::apply takes the view before it
void check() {
#ifdef TWIN
  data::range(4) | data::apply([](auto view) { return view | data::take(1); });
#else
  data::range(4) | data::apply([](int) {});
#endif
}

// case: data_apply_returns_nothing
// error: the function of data::apply returns a view, but this one returns nothing
void check() {
#ifdef TWIN
  data::range(4) | data::apply([](auto view) { return view | data::take(1); });
#else
  data::range(4) | data::apply([](auto view) { view | data::take(1); });
#endif
}

// case: data_cache_file_of_batches
// error: a cache file holds samples: put data::cache\(path\) before batch, and after a data::map that makes them
void check() {
#ifdef TWIN
  data::range(4) | data::batch<2> | data::cache();
#else
  data::range(4) | data::batch<2> | data::cache("batches.cache");
#endif
}

// case: data_cache_file_of_weights
// error: a cache file holds no weights: put data::sample_weight after data::cache\(path\)
auto kept() {
  auto set = data::from_tensor_slices(std::vector{1, 2, 3});
  const std::vector weights{1.0f, 2.0f, 0.5f};
#ifdef TWIN
  return set | data::cache("numbers.cache") | data::sample_weight(weights);
#else
  return set | data::sample_weight(weights) | data::cache("numbers.cache");
#endif
}

// case: data_cache_of_random
// error: data::cache after a random stage would keep the random numbers of the first epoch
template <class Base>
class noisy_rows : public data::detail::samples_around<Base> {
 public:
  static constexpr data::row_properties properties{.is_random = true};

  explicit noisy_rows(Base base) : data::detail::samples_around<Base>(std::move(base)) {}
  template <class T, class Then>
  void write(data::sample_index i, data::sample_index ahead, data::sample_place<T> to, Then then) const {
    this->base_.write(i, ahead, to, then);
    to.x[0] += T(i.epoch);
  }
};

auto cached() {
  auto set = data::from_tensor_slices(std::vector{1, 2, 3});
#ifdef TWIN
  auto kept = set | data::cache;
  return data::rows_view(kept, noisy_rows(kept.rows()));
#else
  return data::cache(data::rows_view(set, noisy_rows(set.rows())));
#endif
}

// case: data_cache_of_random_batches
// error: data::cache after a random stage would keep the random numbers of the first epoch
auto check(data::array<float, shape{2, 2, 1}> images) {
  auto view = data::from_tensor_slices(images);
#ifdef TWIN
  return data::cache(view | data::batch<2>);
#else
  return data::cache(view | data::random_flip() | data::batch<2>);
#endif
}

// case: data_concatenate_of_unequal_elements
// error: data::concatenate takes two views whose .*or whose elements have one type
auto names() { return data::from_range(std::vector<std::string>{"a"}); }

void check() {
#ifdef TWIN
  data::concatenate(names(), names());
#else
  data::concatenate(names(), data::range(2));
#endif
}

// case: data_concatenate_of_unequal_samples
// error: data::concatenate takes two views whose samples have one shape, one kind of labels and one target shape
template <int N>
auto x() {
  return data::from_tensor_slices(data::array<float, shape{N}>(std::vector<float>(6)));
}

void check() {
#ifdef TWIN
  data::concatenate(x<3>(), x<3>());
#else
  data::concatenate(x<3>(), x<2>());
#endif
}

// case: data_enumerate_of_batches
// error: data::enumerate takes a view of samples or elements: put it before batch
void check() {
#ifdef TWIN
  data::range(4) | data::enumerate() | data::batch<2>;
#else
  data::enumerate(data::range(4) | data::batch<2>);
#endif
}

// case: data_flat_map_function
// error: the function of data::flat_map takes an element, or x and y of samples with labels, and returns a range of elements
void check() {
#ifdef TWIN
  data::range(4) | data::flat_map([](auto i) { return data::range(i + 1); });
#else
  data::flat_map(data::range(4), [](auto i) { return i + 1; });
#endif
}

// case: data_flat_map_of_weights
// error: data::flat_map would lose the weights: put data::sample_weight after it
void check() {
  const auto weighted = data::sample_weight([](auto) { return 0.5; });
  const auto parts = data::flat_map([weighted](auto) {
#ifdef TWIN
    return data::from_tensor_slices(std::vector{1, 2, 3});
#else
    return data::from_tensor_slices(std::vector{1, 2, 3}) | weighted;
#endif
  });
  data::range(4) | parts | weighted;
}

// case: data_interleave_function
// error: the function of data::interleave takes an element, or x and y of samples with labels, and returns a range of elements
void check() {
#ifdef TWIN
  data::range(4) | data::interleave([](auto i) { return data::range(i + 1); });
#else
  data::interleave(data::range(4), [](auto i, int) { return data::range(i + 1); });
#endif
}

// case: data_interleave_of_batches
// error: data::interleave takes a view of samples or elements: put it before batch
constexpr auto some = [](auto) { return data::range(3); };

void check() {
#ifdef TWIN
  data::range(4) | data::interleave(some) | data::batch<2>;
#else
  data::interleave(data::range(4) | data::batch<2>, some);
#endif
}

// case: data_k_fold_of_refused
// error: data::shuffle takes a view of samples or elements: put it before batch
// whole program
#include <strata/data.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  const auto folds = data::k_fold(data::synthetic_digits(64, 1), 4);
#else
  const auto folds = data::k_fold(data::synthetic_digits(64, 1) | data::batch<8> | data::shuffle(64), 4, {.shuffle = true});
#endif
  for (const auto& [train, test] : folds) {
    trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
    model.fit(train | data::batch<8>, epochs(1), validation(test | data::batch<8>));
  }
}

// case: data_k_fold_of_shuffled
// error: data::k_fold takes a view with random access: put it right after the data, before shuffle
// whole program
#include <strata/data.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  const auto folds = data::k_fold(data::synthetic_digits(64, 1), 4);
#else
  const auto folds = data::k_fold(data::synthetic_digits(64, 1) | data::shuffle(64), 4, {.shuffle = true});
#endif
  for (const auto& [train, test] : folds) {
    trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
    model.fit(train | data::batch<8>, epochs(1), validation(test | data::batch<8>));
  }
}

// case: data_map_arguments
// error: the function of data::map takes x, or x and y of samples with labels, or an element: write .auto x. or
// whole program
#include <strata/data/views/map.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::synthetic_digits(64, 1) | data::map([](auto x, int y) { return std::pair(x, y); }) | data::batch<32>,
            epochs(1));
#else
  model.fit(data::synthetic_digits(64, 1) | data::map([](std::vector<float> x) { return x; }) | data::batch<32>, epochs(1));
#endif
}

// case: data_map_of_batches_function
// error: the function of data::map after data::batch takes a data::mutable_batch
void check() {
#ifdef TWIN
  data::range(4) | data::batch<2> | data::map([](auto& b) { b.x(0)(0) = 1; });
#else
  data::map(data::range(4) | data::batch<2>, [](auto, int) {});
#endif
}

// case: data_map_returns_nothing
// error: the function of data::map returns a sample or an element, but this one returns nothing
auto check() {
#ifdef TWIN
  return data::range(4) | data::map([](auto x) { return x; });
#else
  return data::range(4) | data::map([](auto) {});
#endif
}

// case: data_map_to_no_sample
// error: elements before data::batch are samples: an array of numbers, std::array or tensor, or a pair of it and a label
// whole program
#include <strata/data/views/map.hpp>
#include <strata/strata.hpp>

using net = sequential<input<2>, dense<10, softmax>>;
struct point {
  float x, y;
};
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  const auto digits = data::synthetic_digits(64, 1);
#ifdef TWIN
  model.fit(digits | data::map([](const auto&) { return std::pair(std::array<float, 2>{}, 1); }) | data::batch<32>);
#else
  model.fit(digits | data::map([](const auto&) { return point{}; }) | data::batch<32>);
#endif
}

// case: data_random_flip_of_vectors
// error: data::random_flip takes a view of images, samples of shape .height, width, channels., before batch
#ifdef TWIN
constexpr shape sample{4, 4, 1};
#else
constexpr shape sample{16};
#endif
void flip(data::array<float, sample> x) { data::random_flip(data::from_tensor_slices(x)); }

// case: data_shard_by_file_of_samples
// error: auto_shard::file takes a data set that reads files
auto mine() {
#ifdef TWIN
  using policy = data::auto_shard::data;
#else
  using policy = data::auto_shard::file;
#endif
  return data::shard_by<policy>(data::from_tensor_slices(std::vector{1, 2, 3}), 2, 0);
}

// case: data_shuffle_after_batch
// error: data::shuffle takes a view of samples or elements: put it before batch
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::synthetic_digits(64, 1) | data::shuffle(64) | data::batch<32>, epochs(1));
#else
  model.fit(data::synthetic_digits(64, 1) | data::batch<32> | data::shuffle(64), epochs(1));
#endif
}

// case: data_shuffle_before_shard
// error: each worker would shuffle by itself, and shards would overlap
auto mine() {
  const auto set = data::from_tensor_slices(std::vector{1, 2, 3});
#ifdef TWIN
  return set | data::shuffle(3, data::shared_seed{1}) | data::shard(2, 0);
#else
  return data::shard(set | data::shuffle(3, {.seed = 1}), 2, 0);
#endif
}

// case: data_split_of_refused
// error: data::shuffle takes a view of samples or elements: put it before batch
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  const auto [train, test] = data::split_dataset(data::synthetic_digits(64, 1), {.left_size = 0.5});
#else
  const auto [train, test] =
      data::split_dataset(data::synthetic_digits(64, 1) | data::batch<8> | data::shuffle(64), {.left_size = 0.5});
#endif
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(train | data::batch<8>, epochs(1), validation(test | data::batch<8>));
}

// case: data_split_of_shuffled
// error: data::split_dataset takes a view with random access: put it right after the data, before shuffle
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  const auto [train, test] = data::split_dataset(data::synthetic_digits(64, 1), {.left_size = 0.5});
#else
  const auto [train, test] = data::split_dataset(data::synthetic_digits(64, 1) | data::shuffle(64), {.left_size = 0.5});
#endif
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(train | data::batch<8>, epochs(1), validation(test | data::batch<8>));
}

// case: data_zip_of_batches
// error: data::zip takes two views of samples or elements: put it before batch
void check() {
#ifdef TWIN
  data::zip(data::range(4), data::range(4));
#else
  data::zip(data::range(4), data::range(4) | data::batch<2>);
#endif
}
