// Networks, training on this machine, and data in memory. Files and further views: <strata/data.hpp>. Needs no library but
// threads.
#pragma once

#if __cplusplus < 202002L
#error "strata needs C++20: -std=c++20, or cpp_std=c++20 among the default_options of a project of Meson's"
#endif

// First, so that the diagnostic about a wrong network has a short list of includes.
#include <strata/network/graph.hpp>
#include <strata/network/sequential.hpp>

#include <strata/layers/activation.hpp>
#include <strata/layers/activations.hpp>
#include <strata/layers/add.hpp>
#include <strata/layers/average.hpp>
#include <strata/layers/average_pool2d.hpp>
#include <strata/layers/batch_norm.hpp>
#include <strata/layers/columns.hpp>
#include <strata/layers/concat.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/conv2d_transpose.hpp>
#include <strata/layers/cropping2d.hpp>
#include <strata/layers/dense.hpp>
#include <strata/layers/depthwise_conv2d.hpp>
#include <strata/layers/dropout.hpp>
#include <strata/layers/embedding.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/layers/frozen.hpp>
#include <strata/layers/global_pool1d.hpp>
#include <strata/layers/global_pool2d.hpp>
#include <strata/layers/layer_norm.hpp>
#include <strata/layers/max_pool2d.hpp>
#include <strata/layers/maximum.hpp>
#include <strata/layers/multiply.hpp>
#include <strata/layers/normalization.hpp>
#include <strata/layers/on_device.hpp>
#include <strata/layers/rescaling.hpp>
#include <strata/layers/reshape.hpp>
#include <strata/layers/residual.hpp>
#include <strata/layers/separable_conv2d.hpp>
#include <strata/layers/subtract.hpp>
#include <strata/layers/up_sampling2d.hpp>
#include <strata/layers/zero_padding2d.hpp>

#include <strata/initializers/constant.hpp>
#include <strata/initializers/glorot.hpp>
#include <strata/initializers/he.hpp>
#include <strata/initializers/lecun.hpp>
#include <strata/initializers/orthogonal.hpp>
#include <strata/initializers/random.hpp>

#include <strata/losses/binary_crossentropy.hpp>
#include <strata/losses/binary_focal_crossentropy.hpp>
#include <strata/losses/categorical_crossentropy.hpp>
#include <strata/losses/categorical_focal_crossentropy.hpp>
#include <strata/losses/categorical_hinge.hpp>
#include <strata/losses/cosine_similarity.hpp>
#include <strata/losses/given_gradient.hpp>
#include <strata/losses/hinge.hpp>
#include <strata/losses/huber.hpp>
#include <strata/losses/kl_divergence.hpp>
#include <strata/losses/kl_of_normal.hpp>
#include <strata/losses/log_cosh.hpp>
#include <strata/losses/mean_absolute_error.hpp>
#include <strata/losses/mean_absolute_percentage_error.hpp>
#include <strata/losses/mean_of_values.hpp>
#include <strata/losses/mean_squared_error.hpp>
#include <strata/losses/mean_squared_logarithmic_error.hpp>
#include <strata/losses/poisson.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>

#include <strata/metrics/accuracy.hpp>
#include <strata/metrics/auc.hpp>
#include <strata/metrics/binary_accuracy.hpp>
#include <strata/metrics/categorical_accuracy.hpp>
#include <strata/metrics/confusion.hpp>
#include <strata/metrics/confusion_matrix.hpp>
#include <strata/metrics/f1_score.hpp>
#include <strata/metrics/r2_score.hpp>
#include <strata/metrics/root_mean_squared_error.hpp>
#include <strata/metrics/top_k_categorical_accuracy.hpp>

#include <strata/optimizers/adadelta.hpp>
#include <strata/optimizers/adafactor.hpp>
#include <strata/optimizers/adagrad.hpp>
#include <strata/optimizers/adam.hpp>
#include <strata/optimizers/adamax.hpp>
#include <strata/optimizers/ftrl.hpp>
#include <strata/optimizers/lamb.hpp>
#include <strata/optimizers/lion.hpp>
#include <strata/optimizers/nadam.hpp>
#include <strata/optimizers/rmsprop.hpp>
#include <strata/optimizers/schedules.hpp>
#include <strata/optimizers/sgd.hpp>

// Included here for the same reason: the diagnostic about a missing kernel has a short list of includes.
#include <strata/program/compiled.hpp>

#include <strata/cpu/cpu.hpp>

// First, as above.
#include <strata/data/sources/from_tensor_slices.hpp>

#include <strata/data/sets/synthetic_digits.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/check_finite.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/repeat.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/skip.hpp>
#include <strata/data/views/split_dataset.hpp>
#include <strata/data/views/take.hpp>

// After the sources and views that it uses, for the same reason.
#include <strata/program/print_plan.hpp>
#include <strata/train/trainer.hpp>
#include <strata/version.hpp>

// After the trainer that it includes, so that the errors of that one name one header less.
#include <strata/train/graph_trainer.hpp>

#ifdef STRATA_COMPILED
#define STRATA_INSTANCE extern template
#define STRATA_ELEMENT float
#include <strata/compiled/instances.ipp>
#undef STRATA_ELEMENT
#define STRATA_ELEMENT double
#include <strata/compiled/instances.ipp>
#undef STRATA_ELEMENT
#undef STRATA_INSTANCE
#endif
