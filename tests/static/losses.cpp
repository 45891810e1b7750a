// Losses: types, options, shapes and their reasons; those that need no logarithm are constant expressions.
#include <array>
#include <strata/concepts/loss.hpp>
#include <strata/concepts/metric.hpp>
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
using namespace strata;
using namespace strata::core;

// Without options there are no angle brackets.
static_assert(std::same_as<decltype(sparse_categorical_crossentropy{}), sparse_categorical_crossentropy<>>);
static_assert(std::same_as<decltype(categorical_crossentropy{}), categorical_crossentropy<>>);
static_assert(std::same_as<decltype(binary_crossentropy{}), binary_crossentropy<>>);
static_assert(std::same_as<decltype(huber{}), huber<1>>);
static_assert(std::same_as<mse, mean_squared_error> && std::same_as<mae, mean_absolute_error>);

template <class L, label_kind Kind>
concept loss_of = loss_function<L> && L::labels == Kind && measures<L, Kind>;
static_assert(loss_of<sparse_categorical_crossentropy<>, label_kind::sparse>);
static_assert(loss_of<sparse_categorical_crossentropy<from_logits>, label_kind::sparse>);
static_assert(loss_of<categorical_crossentropy<>, label_kind::dense>);
static_assert(loss_of<categorical_crossentropy<label_smoothing<0.1_r>, from_logits>, label_kind::dense>);
static_assert(loss_of<binary_crossentropy<>, label_kind::dense>);
static_assert(loss_of<mean_squared_error, label_kind::dense>);
static_assert(loss_of<mean_absolute_error, label_kind::dense>);
static_assert(loss_of<huber<>, label_kind::dense>);
template <class... L>
inline constexpr bool of_rows_of_truth = (loss_of<L, label_kind::dense> && ...);
static_assert(of_rows_of_truth<given_gradient, hinge, squared_hinge, categorical_hinge, log_cosh, poisson,
                               mean_absolute_percentage_error, mean_squared_logarithmic_error, kl_divergence, cosine_similarity,
                               binary_focal_crossentropy<>, categorical_focal_crossentropy<>>);
template <class L>
concept loss_without_truth = loss_function<L> && L::labels == label_kind::none;
static_assert(loss_without_truth<kl_of_normal> && loss_without_truth<mean_of_values>);
static_assert(std::same_as<mape, mean_absolute_percentage_error> && std::same_as<msle, mean_squared_logarithmic_error>);
static_assert(!measures<mean_squared_error, label_kind::sparse> &&
              !measures<sparse_categorical_crossentropy<>, label_kind::dense>);

static_assert(!sparse_categorical_crossentropy<>::settings.from_logits);
static_assert(categorical_crossentropy<label_smoothing<0.1_r>, from_logits>::settings.from_logits);
static_assert(categorical_crossentropy<label_smoothing<0.1_r>, from_logits>::smoothing == 0.1);
static_assert(sparse_categorical_crossentropy<>::misused_option < 0);
static_assert(sparse_categorical_crossentropy<label_smoothing<0.1_r>>::misused_option == 0);
static_assert(categorical_crossentropy<from_logits, no_bias>::misused_option == 1);

template <class L, shape In>
inline constexpr bool takes = !L::output_shape(In).refused && L::output_shape(In).value == In;
template <class L, shape In>
inline constexpr const reason* why = L::output_shape(In).why;
static_assert(takes<sparse_categorical_crossentropy<>, shape{2}> && takes<categorical_crossentropy<>, shape{10}>);
static_assert(takes<binary_crossentropy<>, shape{1}> && takes<binary_crossentropy<>, shape{8, 8, 1}>);
static_assert(takes<mean_squared_error, shape{28, 28, 1}> && takes<huber<>, shape{1}>);
static_assert(why<sparse_categorical_crossentropy<>, shape{4, 4, 2}> == &reasons::crossentropy_takes_a_rank_1_shape_of_classes);
static_assert(why<categorical_crossentropy<>, shape{1}> ==
              &reasons::crossentropy_needs_at_least_2_classes_with_one_output_use_binary_crossentropy);
static_assert(why<categorical_crossentropy<label_smoothing<1.5_r>>, shape{3}> == &reasons::label_smoothing_must_be_from_0_to_1);
static_assert(why<binary_crossentropy<label_smoothing<-0.1_r>>, shape{3}> == &reasons::label_smoothing_must_be_from_0_to_1);
static_assert(why<huber<0>, shape{3}> == &reasons::huber_delta_must_be_positive);

template <shape In, class... L>
inline constexpr bool all_take = (takes<L, In> && ...);
static_assert(
    all_take<shape{4, 3, 2}, given_gradient, hinge, squared_hinge, log_cosh, poisson, mape, msle, binary_focal_crossentropy<>>);
static_assert(all_take<shape{4}, kl_divergence, cosine_similarity, categorical_hinge, categorical_focal_crossentropy<>>);
static_assert(why<kl_divergence, shape{4, 2}> == &reasons::the_loss_takes_a_rank_1_shape_put_flatten_before_it);
static_assert(why<cosine_similarity, shape{4, 2}> == &reasons::the_loss_takes_a_rank_1_shape_put_flatten_before_it);
static_assert(why<categorical_hinge, shape{4, 2}> == &reasons::the_loss_takes_a_rank_1_shape_put_flatten_before_it);
static_assert(why<categorical_focal_crossentropy<>, shape{4, 2}> == &reasons::crossentropy_takes_a_rank_1_shape_of_classes);
static_assert(why<binary_focal_crossentropy<focal_gamma<-1>>, shape{3}> == &reasons::focal_gamma_must_be_at_least_0);
static_assert(why<categorical_focal_crossentropy<focal_alpha<2>>, shape{3}> == &reasons::focal_alpha_must_be_from_0_to_1);
static_assert(why<binary_focal_crossentropy<label_smoothing<2>>, shape{3}> == &reasons::label_smoothing_must_be_from_0_to_1);
static_assert(categorical_focal_crossentropy<apply_class_balancing>::misused_option == 0);

template <class L>
constexpr double value(std::array<double, 2> prediction, std::array<double, 2> truth) {
  return L::value(std::span<const double>(prediction), std::span<const double>(truth));
}
template <class L>
constexpr std::array<double, 2> gradient(std::array<double, 2> prediction, std::array<double, 2> truth) {
  std::array<double, 2> dx{};
  L::gradient(std::span<const double>(prediction), std::span<const double>(truth), std::span<double>(dx));
  return dx;
}
static_assert(value<mse>({1, 5}, {2, 2}) == 5 && gradient<mse>({1, 5}, {2, 2}) == std::array{-1., 3.});
static_assert(value<mae>({1, 5}, {2, 2}) == 2 && gradient<mae>({1, 2}, {2, 2}) == std::array{-0.5, 0.});
static_assert(value<huber<>>({1.5, 5}, {2, 2}) == (0.125 + 2.5) / 2 &&
              gradient<huber<>>({1.5, 5}, {2, 2}) == std::array{-0.25, 0.5});
static_assert(value<hinge>({0.5, 2}, {1, 1}) == 0.25 && gradient<hinge>({0.5, 2}, {1, 1}) == std::array{-0.5, 0.});
static_assert(value<squared_hinge>({0.5, 2}, {1, 0}) == (0.25 + 9) / 2);
static_assert(value<categorical_hinge>({2, 1}, {0, 1}) == 2 && value<mape>({1, 2}, {2, 2}) == 25);
