// Losses.
#include <strata/layers/dense.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/losses/binary_crossentropy.hpp>
#include <strata/losses/binary_focal_crossentropy.hpp>
#include <strata/losses/categorical_crossentropy.hpp>
#include <strata/losses/categorical_focal_crossentropy.hpp>
#include <strata/losses/categorical_hinge.hpp>
#include <strata/losses/cosine_similarity.hpp>
#include <strata/losses/huber.hpp>
#include <strata/losses/kl_divergence.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
using namespace strata::core;

// case: loss_from_logits_after_softmax
// error: prediction_mismatch<.*the_network_ends_with<.*dense<10.*the_loss_is<.*sparse_categorical_crossentropy.*because<.*applies_the_activation_again_leave_out_either_or_allow_it_by_activation_linear>
// whole program
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy<from_logits>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: loss_of_logits_without_from_logits
// error: prediction_mismatch<.*the_network_ends_with<.*dense<10.*the_loss_is<.*sparse_categorical_crossentropy.*because<.*end_with_softmax_or_write_from_logits_or_allow_it_by_activation_linear>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, dense<10>, activation<linear>>;
#else
using net = sequential<input<28, 28, 1>, flatten, dense<10>, dropout<0.1_r>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: loss_of_relu
// error: prediction_mismatch<.*the_network_ends_with<.*dense<1, .*the_loss_is<.*binary_crossentropy.*because<.*end_with_sigmoid_or_write_from_logits_or_allow_it_by_activation_linear>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<8>, dense<1, sigmoid>>;
#else
using net = sequential<input<8>, dense<1, relu>>;
#endif
void train() {
  const data::array<float, shape{8}> x;
  const data::array<float, shape{1}> y;
  trainer model{net{}, adam{}, binary_crossentropy{}};
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
}

// case: loss_without_gradient
// error: incomplete_model<.*loss_of_mine.*because<.*losses_have_gradient_which_stores_into_dx>
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10>>;
struct loss_of_mine {
  static constexpr auto name = "loss_of_mine";
  static constexpr label_kind labels = label_kind::dense;
  static constexpr expected_shape output_shape(shape in) { return in; }
  template <class T>
  static constexpr T value(std::span<const T> prediction, std::span<const T> truth) {
    return prediction[0] - truth[0];
  }
#ifdef TWIN
  template <class T>
  static constexpr void gradient(std::span<const T>, std::span<const T>, std::span<T> dx) {
    for (T& d : dx) d = 0;
  }
#endif
};
void train() { trainer model{net{}, adam{}, loss_of_mine{}}; }

// case: loss_without_labels
// error: incomplete_model<.*loss_of_mine.*because<.*losses_have_labels_sparse_dense_or_none>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<10>>;
struct loss_of_mine {
  static constexpr auto name = "loss_of_mine";
#ifdef TWIN
  static constexpr label_kind labels = label_kind::sparse;
#endif
  static constexpr expected_shape output_shape(shape in) { return in; }
  template <class T>
  static constexpr T value(std::span<const T> prediction, std::int32_t label) {
    return prediction[std::size_t(label)];
  }
  template <class T>
  static constexpr void gradient(std::span<const T>, std::int32_t, std::span<T> dx) {
    for (T& d : dx) d = 0;
  }
};
void train() {
  trainer model{net{}, adam{}, loss_of_mine{}, accuracy{}};
  model.fit(data::synthetic_digits(10, 1) | data::batch<2>, epochs(1));
}

// case: losses_categorical_hinge_of_an_image
// error: shape_mismatch<.*by_layer<.*categorical_hinge.*because<.*the_loss_takes_a_rank_1_shape_put_flatten_before_it>
#ifdef TWIN
using net = sequential<input<4>, categorical_hinge>;
#else
using net = sequential<input<2, 2>, categorical_hinge>;
#endif
net n;

// case: losses_cosine_similarity_of_an_image
// error: shape_mismatch<.*by_layer<.*cosine_similarity.*because<.*the_loss_takes_a_rank_1_shape_put_flatten_before_it>
#ifdef TWIN
using net = sequential<input<4>, cosine_similarity>;
#else
using net = sequential<input<2, 2>, cosine_similarity>;
#endif
net n;

// case: losses_crossentropy_of_an_image
// error: shape_mismatch<.*by_layer<.*categorical_crossentropy<.*receives<4, 4, 2>.*because<.*crossentropy_takes_a_rank_1_shape_of_classes>
#ifdef TWIN
using net = sequential<input<4, 4, 2>, flatten, categorical_crossentropy<>>;
#else
using net = sequential<input<4, 4, 2>, categorical_crossentropy<>>;
#endif
net n;

// case: losses_crossentropy_of_one_class
// error: shape_mismatch<.*by_layer<.*sparse_categorical_crossentropy<.*receives<1>.*because<.*crossentropy_needs_at_least_2_classes_with_one_output_use_binary_crossentropy>
#ifdef TWIN
using net = sequential<input<8>, dense<1, sigmoid>, binary_crossentropy<>>;
#else
using net = sequential<input<8>, dense<1, sigmoid>, sparse_categorical_crossentropy<>>;
#endif
net n;

// case: losses_focal_alpha_above_one
// error: shape_mismatch<.*by_layer<.*categorical_focal_crossentropy<.*because<.*focal_alpha_must_be_from_0_to_1>
#ifdef TWIN
using net = sequential<input<8>, dense<4, softmax>, categorical_focal_crossentropy<focal_alpha<0.5_r>>>;
#else
using net = sequential<input<8>, dense<4, softmax>, categorical_focal_crossentropy<focal_alpha<1.5_r>>>;
#endif
net n;

// case: losses_focal_class_balancing_of_classes
// error: wrong_option<.*by_layer<.*categorical_focal_crossentropy<.*apply_class_balancing.*because<.*the_layer_does_not_know_this_option>
#ifdef TWIN
using net = sequential<input<8>, dense<4, softmax>, categorical_focal_crossentropy<from_logits>>;
#else
using net = sequential<input<8>, dense<4, softmax>, categorical_focal_crossentropy<apply_class_balancing>>;
#endif
net n;

// case: losses_focal_gamma_negative
// error: shape_mismatch<.*by_layer<.*binary_focal_crossentropy<.*because<.*focal_gamma_must_be_at_least_0>
#ifdef TWIN
using net = sequential<input<8>, dense<4, sigmoid>, binary_focal_crossentropy<focal_gamma<1.5_r>>>;
#else
using net = sequential<input<8>, dense<4, sigmoid>, binary_focal_crossentropy<focal_gamma<-1>>>;
#endif
net n;

// case: losses_huber_delta_zero
// error: shape_mismatch<.*by_layer<.*huber<.*because<.*huber_delta_must_be_positive>
#ifdef TWIN
using net = sequential<input<8>, dense<4>, huber<0.5_r>>;
#else
using net = sequential<input<8>, dense<4>, huber<0>>;
#endif
net n;

// case: losses_kl_divergence_of_an_image
// error: shape_mismatch<.*by_layer<.*kl_divergence.*because<.*the_loss_takes_a_rank_1_shape_put_flatten_before_it>
#ifdef TWIN
using net = sequential<input<4>, kl_divergence>;
#else
using net = sequential<input<2, 2>, kl_divergence>;
#endif
net n;

// case: losses_label_smoothing_too_large
// error: shape_mismatch<.*by_layer<.*categorical_crossentropy<.*because<.*label_smoothing_must_be_from_0_to_1>
#ifdef TWIN
using net = sequential<input<8>, dense<4>, categorical_crossentropy<label_smoothing<1>>>;
#else
using net = sequential<input<8>, dense<4>, categorical_crossentropy<label_smoothing<1.5_r>>>;
#endif
net n;

// case: losses_unknown_option
// error: wrong_option<.*by_layer<.*sparse_categorical_crossentropy<.*label_smoothing<.*because<.*the_layer_does_not_know_this_option>
#ifdef TWIN
using net = sequential<input<8>, dense<4>, categorical_crossentropy<label_smoothing<0.1_r>>>;
#else
using net = sequential<input<8>, dense<4>, sparse_categorical_crossentropy<label_smoothing<0.1_r>>>;
#endif
net n;

// case: sequential_with_a_loss_without_truth
// error: wrong_argument<.*loss_of_mine.*because<.*a_loss_without_truth_is_that_of_an_output_of_a_graph>
#include <strata/strata.hpp>

using net = sequential<input<8>, dense<10>>;
#ifdef TWIN
using truth = std::span<const float>;
#else
using truth = core::no_truth;
#endif
struct loss_of_mine {
  static constexpr auto name = "loss_of_mine";
  static constexpr label_kind labels = std::is_same_v<truth, core::no_truth> ? label_kind::none : label_kind::dense;
  static constexpr expected_shape output_shape(shape in) { return in; }
  template <class T>
  static constexpr T value(std::span<const T> prediction, auto) {
    return prediction[0];
  }
  template <class T>
  static constexpr void gradient(std::span<const T>, auto, std::span<T> dx) {
    for (T& d : dx) d = 0;
  }
};
void train() { trainer model{net{}, adam{}, loss_of_mine{}}; }
