// Losses against the recordings: each by itself, as a kernel, and fused with the softmax or sigmoid before it.
#include <strata/base/arena.hpp>
#include <strata/base/precision.hpp>
#include <strata/cpu/cpu.hpp>
#include <strata/losses/binary_focal_crossentropy.hpp>
#include <strata/losses/categorical_focal_crossentropy.hpp>
#include <strata/losses/categorical_hinge.hpp>
#include <strata/losses/cosine_similarity.hpp>
#include <strata/losses/hinge.hpp>
#include <strata/losses/huber.hpp>
#include <strata/losses/kl_divergence.hpp>
#include <strata/losses/log_cosh.hpp>
#include <strata/losses/mean_absolute_error.hpp>
#include <strata/losses/mean_absolute_percentage_error.hpp>
#include <strata/losses/mean_squared_error.hpp>
#include <strata/losses/mean_squared_logarithmic_error.hpp>
#include <strata/losses/poisson.hpp>

#include "recorded.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

/// The losses of generate.py, then those of generate_losses.py.
static recording first_losses("losses"), more_losses("more_losses");

static recording& recording_of(const std::string& name) { return first_losses.has(name + "/loss") ? first_losses : more_losses; }

namespace {

template <class T>
struct recorded_case {
  std::string name;
  std::vector<T> predictions, targets;
  std::vector<std::int32_t> labels;

  explicit recorded_case(std::string n, bool sparse)
      : name(std::move(n)), predictions(recording_of(name).tensor<T>(name + "/predictions")) {
    if (sparse)
      labels = recording_of(name).integers(name + "/labels");
    else
      targets = recording_of(name).tensor<T>(name + "/labels");
  }
};

/// Checks the mean loss of a kernel for samples of `size` elements, and the gradient with respect to its input.
template <class T, class Kernel>
void check_kernel(const recorded_case<T>& c, int size) {
  const int count = int(c.predictions.size()) / size;
  arena<T> y(c.predictions.size()), dx(c.predictions.size()),
      scratch(std::size_t(traits_of_kernel<Kernel>.scratch + count * traits_of_kernel<Kernel>.scratch_per_sample));
  arena<T> saved(std::size_t(count * traits_of_kernel<Kernel>.saved));
  double loss[2] = {};
  operands<T> o;
  o.count = count, o.total = count;
  o.x[0] = c.predictions.data(), o.y = y.data(), o.dx[0] = dx.data();
  o.labels = c.labels.data(), o.targets = c.targets.data(), o.loss = loss;
  o.scratch = scratch.data(), o.saved = saved.data();
  Kernel::forward(o);
  Kernel::backward(o);
  for (T& g : dx.span()) g /= T(count);

  const double mean[] = {loss[0] / loss[1]};
  CHECK(loss[1] == count);
  compare<double>("loss", mean, recording_of(c.name).tensor(c.name + "/loss"), tolerance_of<T>);
  compare<T>("gradient", dx.span(), recording_of(c.name).tensor(c.name + "/gradient"), tolerance_of<T>);
}

/// In: the shape of a sample, which is a row of a recorded image if the loss takes no images.
template <class Loss, shape In, class P, class... Before>
void check_in(const std::string& name) {
  using T = typename P::value_type;
  INFO(name << ", " << sizeof(T) << " bytes");
  constexpr bool sparse = Loss::labels == label_kind::sparse;
  const recorded_case<T> c(name, sparse);
  const std::size_t size = std::size_t(In.size());
  const std::vector<double> expected = recording_of(name).tensor(name + "/per_position");
  // Terms of 1e-7 cancel in the losses of single samples, but not in their mean.
  if (sizeof...(Before) == 0 && In.rank() == 1 && !name.ends_with("_clamped")) {
    REQUIRE(expected.size() * size == c.predictions.size());
    std::vector<T> values;
    for (std::size_t r = 0; r < expected.size(); ++r) {
      const std::span<const T> row(c.predictions.data() + r * size, size);
      if constexpr (sparse)
        values.push_back(Loss::value(row, c.labels[r]));
      else
        values.push_back(Loss::value(row, std::span<const T>(c.targets.data() + r * size, size)));
    }
    compare<T>("per_position", values, expected, tolerance_of<T>);
  }
  using operation = std::conditional_t<sizeof...(Before) == 0, Loss, fused<Before..., Loss>>;
  check_kernel<T, typename find_kernel<reference, operation, P, In>::type>(c, In.size());
  check_kernel<T, typename find_kernel<cpu, operation, P, In>::type>(c, In.size());
}

template <class Loss, shape In, class... Before>
void check(const std::string& name) {
  check_in<Loss, In, precision::f64, Before...>(name);
  // 1 - (1 - 1e-7) is 1.19e-7 in float: the value is wrong by 4e-3, in Keras as well.
  if (name != "binary_crossentropy_clamped") check_in<Loss, In, precision::f32, Before...>(name);
}

using smoothed = label_smoothing<0.1_r>;

}  // namespace

TEST_CASE("categorical_crossentropy") {
  for (const char* name :
       {"categorical_crossentropy", "categorical_crossentropy_unnormalised", "categorical_crossentropy_soft_labels"})
    check<categorical_crossentropy<>, shape{7}>(name);
  check<categorical_crossentropy<>, shape{4}>("categorical_crossentropy_clamped");
  check<categorical_crossentropy<>, shape{5}>("categorical_crossentropy_image");
  check<categorical_crossentropy<smoothed>, shape{7}>("categorical_crossentropy_label_smoothing");
}

TEST_CASE("categorical_crossentropy of logits, and fused with softmax") {
  for (const char* name : {"categorical_crossentropy_from_logits", "categorical_crossentropy_from_logits_soft_labels",
                           "categorical_crossentropy_from_logits_large"}) {
    check<categorical_crossentropy<from_logits>, shape{7}>(name);
    check<categorical_crossentropy<>, shape{7}, softmax>(name);
  }
  check<categorical_crossentropy<from_logits>, shape{5}>("categorical_crossentropy_from_logits_image");
  check<categorical_crossentropy<from_logits, smoothed>, shape{7}>("categorical_crossentropy_from_logits_label_smoothing");
  check<categorical_crossentropy<smoothed>, shape{7}, softmax>("categorical_crossentropy_from_logits_label_smoothing");
}

TEST_CASE("sparse_categorical_crossentropy") {
  for (const char* name : {"sparse_categorical_crossentropy", "sparse_categorical_crossentropy_unnormalised"})
    check<sparse_categorical_crossentropy<>, shape{7}>(name);
  check<sparse_categorical_crossentropy<>, shape{4}>("sparse_categorical_crossentropy_clamped");
  check<sparse_categorical_crossentropy<>, shape{5}>("sparse_categorical_crossentropy_image");
}

TEST_CASE("sparse_categorical_crossentropy of logits, and fused with softmax") {
  for (const char* name : {"sparse_categorical_crossentropy_from_logits", "sparse_categorical_crossentropy_from_logits_large"}) {
    check<sparse_categorical_crossentropy<from_logits>, shape{7}>(name);
    check<sparse_categorical_crossentropy<>, shape{7}, softmax>(name);
  }
  check<sparse_categorical_crossentropy<from_logits>, shape{5}>("sparse_categorical_crossentropy_from_logits_image");
}

TEST_CASE("binary_crossentropy") {
  check<binary_crossentropy<>, shape{3}>("binary_crossentropy");
  check<binary_crossentropy<>, shape{1}>("binary_crossentropy_single");
  check<binary_crossentropy<>, shape{3}>("binary_crossentropy_clamped");
  check<binary_crossentropy<smoothed>, shape{3}>("binary_crossentropy_label_smoothing");
  check<binary_crossentropy<>, shape{5}>("binary_crossentropy_image");
  check<binary_crossentropy<>, shape{3, 4, 5}>("binary_crossentropy_image");
}

TEST_CASE("binary_crossentropy of logits, and fused with sigmoid") {
  for (const char* name : {"binary_crossentropy_from_logits", "binary_crossentropy_from_logits_large"}) {
    check<binary_crossentropy<from_logits>, shape{3}>(name);
    check<binary_crossentropy<>, shape{3}, sigmoid>(name);
  }
  check<binary_crossentropy<from_logits, smoothed>, shape{3}>("binary_crossentropy_from_logits_label_smoothing");
  check<binary_crossentropy<smoothed>, shape{3}, sigmoid>("binary_crossentropy_from_logits_label_smoothing");
}

TEST_CASE("regression") {
  check<mean_squared_error, shape{7}>("mean_squared_error");
  check<mean_squared_error, shape{5}>("mean_squared_error_image");
  check<mean_squared_error, shape{3, 4, 5}>("mean_squared_error_image");
  check<mean_absolute_error, shape{7}>("mean_absolute_error");
  check<mean_absolute_error, shape{5}>("mean_absolute_error_image");
  check<mean_absolute_error, shape{3, 4, 5}>("mean_absolute_error_image");
  check<huber<>, shape{7}>("huber");
  check<huber<0.5_r>, shape{7}>("huber_delta");
  check<huber<>, shape{5}>("huber_image");
  check<huber<>, shape{3, 4, 5}>("huber_image");
}

TEST_CASE("hinges") {
  check<hinge, shape{7}>("hinge");
  check<hinge, shape{7}>("hinge_bits");
  check<hinge, shape{3, 4, 5}>("hinge_image");
  check<squared_hinge, shape{7}>("squared_hinge");
  check<squared_hinge, shape{3, 4, 5}>("squared_hinge_image");
  check<categorical_hinge, shape{7}>("categorical_hinge");
  check<categorical_hinge, shape{5}>("categorical_hinge_image");
}

TEST_CASE("losses with logarithms, percentages, cosines") {
  check<log_cosh, shape{7}>("log_cosh");
  check<log_cosh, shape{3, 4, 5}>("log_cosh_image");
  check<poisson, shape{7}>("poisson");
  check<poisson, shape{3, 4, 5}>("poisson_image");
  check<mean_absolute_percentage_error, shape{7}>("mean_absolute_percentage_error");
  check<mean_absolute_percentage_error, shape{3, 4, 5}>("mean_absolute_percentage_error_image");
  check<mean_squared_logarithmic_error, shape{7}>("mean_squared_logarithmic_error");
  check<mean_squared_logarithmic_error, shape{3, 4, 5}>("mean_squared_logarithmic_error_image");
  check<kl_divergence, shape{7}>("kl_divergence");
  check<kl_divergence, shape{7}>("kl_divergence_zeros");
  check<kl_divergence, shape{5}>("kl_divergence_image");
  check<cosine_similarity, shape{7}>("cosine_similarity");
  check<cosine_similarity, shape{5}>("cosine_similarity_image");
}

TEST_CASE("focal crossentropies") {
  check<binary_focal_crossentropy<>, shape{7}>("binary_focal_crossentropy");
  check<binary_focal_crossentropy<>, shape{3, 4, 5}>("binary_focal_crossentropy_image");
  check<binary_focal_crossentropy<focal_gamma<1.5_r>, apply_class_balancing, focal_alpha<0.75_r>>, shape{7}>(
      "binary_focal_crossentropy_balanced");
  check<binary_focal_crossentropy<smoothed>, shape{7}>("binary_focal_crossentropy_label_smoothing");
  check<binary_focal_crossentropy<from_logits>, shape{7}>("binary_focal_crossentropy_from_logits");
  check<categorical_focal_crossentropy<>, shape{7}>("categorical_focal_crossentropy");
  check<categorical_focal_crossentropy<>, shape{5}>("categorical_focal_crossentropy_image");
  check<categorical_focal_crossentropy<smoothed, focal_alpha<0.5_r>, focal_gamma<1.5_r>>, shape{7}>(
      "categorical_focal_crossentropy_settings");
  check<categorical_focal_crossentropy<from_logits>, shape{7}>("categorical_focal_crossentropy_from_logits");
}

TEST_CASE("no recorded tensor is forgotten") {
  CHECK(first_losses.forgotten() == "");
  CHECK(more_losses.forgotten() == "");
}
