// Arguments of fit, evaluate and predict.

using namespace strata;

// case: evaluate_data_set_option
// error: wrong_argument<.*batch_size.*because<.*batch_size_and_shuffle_go_with_arrays
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
struct counter {
  void on_test_end(pass_state&) {}
};
void evaluate() {
  const auto data = data::from_tensor_slices(data::array<float, shape{8}>(std::vector<float>(80)), std::vector<int>(10));
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.evaluate(data | data::batch<5>, counter{});
#else
  model.evaluate(data | data::batch<5>, batch_size(5));
#endif
}

// case: predict_of_another_shape
// error: data_mismatch<.*because<.*data_of_another_shape_get_it_from_data_array_or_data_map_to>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<4, 4, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  const data::array<float, shape{4, 4, 1}> x;
#else
  const data::array<float, shape{4, 4}> x;
#endif
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.predict(data::from_tensor_slices(x) | data::batch<32>);
}

// case: predict_of_words
// error: wrong_argument<.*because<.*x_and_y_are_contiguous_numbers_such_as_a_vector_of_float>
// whole program
#include <strata/strata.hpp>
#include <string>

using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.predict(std::vector<float>(8));
#else
  model.predict(std::vector<std::string>(8));
#endif
}

// case: predict_option
// error: wrong_argument<.*batch_size.*because<.*predict_takes_callbacks_after_the_data>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
struct counter {
  void on_predict_end(pass_state&) {}
};
void predict() {
  const std::vector<float> x(80);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.predict(x, counter{});
#else
  model.predict(x, batch_size(32));
#endif
}

// case: trainer_batch_size_of_batches
// error: wrong_argument<.*batch_size.*because<.*batch_size_and_shuffle_go_with_arrays_a_data_set_has_stages_batch_and_shuffle>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::synthetic_digits(64, 1) | data::batch(32), epochs(1));
#else
  model.fit(data::synthetic_digits(64, 1) | data::batch<64>, batch_size(32), epochs(1));
#endif
}

// case: trainer_evaluate_option
// error: wrong_argument<.*epochs.*because<.*evaluate_takes_batch_size_sample_weight_and_callbacks>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const std::vector<float> x(80), w(10);
  const std::vector<int> y(10);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.evaluate(x, y, sample_weight(w));
#else
  model.evaluate(x, y, epochs(3));
#endif
}

// case: trainer_fit_without_y
// error: wrong_argument<.*because<.*fit_takes_arrays_of_numbers_x_and_y_or_batches_of_a_data_set>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const std::vector<float> x(80);
  const std::vector<int> y(10);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(x, y, epochs(1));
#else
  model.fit(x, epochs(1));
#endif
}

// case: trainer_sample_weight_of_batches
// error: wrong_argument<.*sample_weight.*because<.*sample_weight_goes_with_arrays_x_and_y>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const std::vector<float> x(80), w(10);
  const std::vector<int> y(10);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(x, y, sample_weight(w));
#else
  model.fit(data::from_tensor_slices(data::array<float, shape{8}>(x), y) | data::batch(5), sample_weight(w));
#endif
}

// case: trainer_sample_weight_of_one_number
// error: wrong_argument<.*sample_weight.*because<.*sample_weight_takes_a_vector_of_float_with_a_number_for_each_sample>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const std::vector<float> x(80), w(10);
  const std::vector<int> y(10);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(x, y, sample_weight(w));
#else
  model.fit(x, y, sample_weight(0.5));
#endif
}

// case: trainer_two_validations
// error: wrong_argument<.*validation_split.*because<.*validation_and_validation_split_exclude_each_other>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const std::vector<float> x(80);
  const std::vector<int> y(10);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(x, y, validation(x, y));
#else
  model.fit(x, y, validation(x, y), validation_split(0.2));
#endif
}

// case: trainer_two_weights
// error: wrong_argument<.*class_weight.*because<.*sample_weight_and_class_weight_exclude_each_other>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const std::vector<float> x(80), w(10);
  const std::vector<int> y(10);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(x, y, class_weight{{0, 2.0}});
#else
  model.fit(x, y, sample_weight(w), class_weight{{0, 2.0}});
#endif
}

// case: trainer_unknown_fit_option
// error: wrong_argument<.*int.*because<.*fit_takes_options_and_callbacks
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(5));
#else
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, 5);
#endif
}

// case: trainer_validation_split_of_batches
// error: wrong_argument<.*validation_split.*because<.*validation_split_goes_with_arrays_split_a_data_set_by_data_split_dataset>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(std::vector<float>(784 * 10), std::vector<int>(10), validation_split(0.2));
#else
  model.fit(data::synthetic_digits(64, 1) | data::batch<64>, validation_split(0.2));
#endif
}

// case: trainer_validation_without_batch
// error: wrong_argument<.*because<.*the_data_must_come_in_batches_put_batch_after_it>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, validation(data::synthetic_digits(64, 1) | data::batch<32>));
#else
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, validation(data::synthetic_digits(64, 1)));
#endif
}

// case: trainer_validation_without_y
// error: wrong_argument<.*validation<.*because<.*validation_takes_x_and_y_or_batches>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train(const std::vector<float>& x, const std::vector<int>& y) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(x, y, validation(x, y));
#else
  model.fit(x, y, validation(x));
#endif
}
