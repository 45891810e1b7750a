// Data that do not fit a trainer's network.

using namespace strata;

// case: trainer_batches_of_double
// error: data_mismatch<.*the_network_computes_in<float>.*the_batches_hold<double>.*because<.*leave_out_double_in_batch>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
#else
  model.fit(data::synthetic_digits(64, 1) | data::batch<32, double>, epochs(1));
#endif
}

// case: trainer_class_numbers_for_one_hot
// error: data_mismatch<.*the_loss_takes_labels<.*the_data_set_has_labels<.*because<.*use_sparse_categorical_crossentropy_or_put_data_one_hot_before_batch>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::synthetic_digits(64, 1) | data::one_hot<10> | data::batch<32>, epochs(1));
#else
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
#endif
}

// case: trainer_class_numbers_in_an_array
// error: data_mismatch<.*the_loss_takes_labels<.*because<.*use_sparse_categorical_crossentropy_or_put_data_one_hot_before_batch>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const std::vector<float> x(80);
  const std::vector<int> y(10);
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#else
  trainer model{net{}, adam{}, categorical_crossentropy{}};
#endif
  model.fit(x, y, epochs(1));
}

// case: trainer_data_without_batch
// error: wrong_argument<.*tensor_slices.*because<.*the_data_must_come_in_batches_put_batch_after_it>
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train(data::array<float, shape{8}> x, std::vector<int> labels) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::from_tensor_slices(x, labels) | data::batch<32>);
#else
  model.fit(data::from_tensor_slices(x, labels));
#endif
}

// case: trainer_data_without_labels
// error: data_mismatch<.*because<.*the_data_set_has_no_labels_write_data_from_tensor_slices_of_x_and_y>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const data::array<float, shape{8}> x;
  const std::vector<int> y;
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
#else
  model.fit(data::from_tensor_slices(x) | data::batch<32>, epochs(1));
#endif
}

// case: trainer_flat_vector
// error: data_mismatch<.*the_network_takes<4>.*the_data_set_yields<1>.*because<.*samples_in_a_flat_vector_need_a_shape_write_data_array>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<4>, dense<10, softmax>>;
void train() {
  const std::vector<float> x;
  const std::vector<int> y;
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::from_tensor_slices(data::array<float, shape{4}>(x), y) | data::batch<32>, epochs(1));
#else
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
#endif
}

// case: trainer_float_labels
// error: data_mismatch<.*the_loss_takes_labels<.*because<.*class_numbers_are_integers_make_the_labels_a_vector_of_int>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const data::array<float, shape{8}> x;
  const std::vector<float> y;
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::from_tensor_slices(x, std::vector<int>()) | data::batch<32>, epochs(1));
#else
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
#endif
}

// case: trainer_vector_of_vectors
// error: wrong_argument<.*vector.*because<.*x_and_y_are_contiguous_numbers_such_as_a_vector_of_float>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10, softmax>>;
void train() {
#ifdef TWIN
  const std::vector<float> x(80);
#else
  const std::vector<std::vector<float>> x(10, std::vector<float>(8));
#endif
  const std::vector<int> y(10);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(x, y, epochs(1));
}

// case: trainer_wrong_label_kind
// error: data_mismatch<.*the_loss_takes_labels<.*the_data_set_has_labels<.*because<.*use_categorical_crossentropy_or_leave_out_one_hot>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
#else
  model.fit(data::synthetic_digits(64, 1) | data::one_hot<10> | data::batch<32>, epochs(1));
#endif
}

// case: trainer_wrong_sample_shape
// error: data_mismatch<.*the_network_takes<784>.*the_data_set_yields<28, 28, 1>.*because<.*begin_with_input_of_the_shape_of_the_data_then_flatten>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<784>, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: trainer_wrong_target_shape
// error: data_mismatch<.*the_network_predicts<10>.*the_targets_have<7>.*because<
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<8>, dense<7>>;
#else
using net = sequential<input<8>, dense<10>>;
#endif
void train() {
  const data::array<float, shape{8}> x;
  const data::array<float, shape{7}> y;
  trainer model{net{}, adam{}, mean_squared_error{}};
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
}
