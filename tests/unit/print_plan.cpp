// The plan as text, for backends that have only constants.
#include <doctest/doctest.h>

#include <sstream>
#include <strata/layers/activation.hpp>
#include <strata/layers/batch_norm.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/dense.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/layers/max_pool2d.hpp>
#include <strata/layers/reshape.hpp>
#include <strata/layers/residual.hpp>
#include <strata/losses/binary_crossentropy.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>
#include <strata/program/print_plan.hpp>

namespace {

/// A backend with kernels for all operations, and one fused kernel.
struct planner {
  static constexpr auto name = "planner";
};
/// A backend without kernels.
struct beginner {
  static constexpr auto name = "beginner";
};

/// A backend that fuses all operations, but a loss only with the operation before it.
struct greedy {
  static constexpr auto name = "greedy";
};

template <class Network, class Precision = strata::precision::f32>
using training =
    strata::core::program<Network, strata::sparse_categorical_crossentropy<>, int, strata::core::type_list<>, Precision>;

}  // namespace

namespace strata::core {

template <class Operation, class P, shape... In>
struct kernel<planner, Operation, P, In...> {};
template <batch_norm_settings S, class P, shape In>
struct kernel<planner, batch_normalization<S>, P, In> {
  static constexpr kernel_traits traits{.scratch = 10, .scratch_per_sample = 1, .statistics = 2 * In.last()};
};
template <class... Operations, class P, shape... In>
struct kernel<planner, fused<Operations...>, P, In...>;
template <conv_settings S, class P, shape In>
struct kernel<planner, fused<convolution<S>, relu>, P, In> {
  static constexpr kernel_traits traits{.saved = 5, .derived = 20};
};

template <class Operation, class P, shape... In>
struct kernel<greedy, Operation, P, In...> {};
template <class... Operations, class P, shape... In>
struct kernel<greedy, fused<Operations...>, P, In...>;
template <class... Operations, class P, shape... In>
  requires(!loss_function<Operations> && ...)
struct kernel<greedy, fused<Operations...>, P, In...> {};
template <class Activation, loss_function L, class P, shape In>
struct kernel<greedy, fused<Activation, L>, P, In> {};

}  // namespace strata::core

using namespace strata;
using namespace strata::core;

TEST_CASE("a plan says what is fused, who reads what, where it lies, and what backward does") {
  using chain = sequential<input<6, 6, 1>, max_pool2d<2>, conv2d<4, 2, relu>, flatten, dense<3>>;
  CHECK(plan_text<training<chain>, planner>() ==
        R"(plan on planner in f32: 6 operations in 4 groups and 1 segment, numbers of 4 bytes
  parameters  71 trained, 0 state; arena 384.00 B, gradient of a leaf 384.00 B
  derived layouts of weights  128.00 B
  workspace   384.00 B per sample (448.00 B without reuse), for the samples of a micro-batch
    operations                       of     output     layers         output @  saved @  gradient @  derived @  backward
%0  max_pooling                      batch  (3, 3, 1)  max_pooling2d  9 @ 0                                     none
%1  convolution + relu               %0     (2, 2, 4)  conv2d         16 @ 16   5 @ 32   16 @ 48     32 @ 0     dw
%2  affine                           %1     (3,)       dense          3 @ 48             3 @ 80                 dw, stores dx of %1
%3  sparse_categorical_crossentropy  %2     (3,)                      3 @ 64                                    stores dx of %2
parameters
  conv2d/kernel (2, 2, 1, 4) @ 0
  conv2d/bias (4,) @ 16
  dense/kernel (16, 3) @ 32
  dense/bias (3,) @ 80
)");
}

TEST_CASE("segments, statistics, state and gradients that several write") {
  using branched = sequential<input<2, 2, 3>, conv2d<4, 1>, residual<batch_norm<>>, flatten, dense<3>>;
  const std::string text = plan_text<training<branched, precision::f64>, planner>();
  const auto has = [&](std::string_view line) {
    if (text.find(line) != std::string::npos) return true;
    MESSAGE(text);
    return false;
  };
  CHECK(has("plan on planner in f64: 6 operations in 5 groups and 2 segments, numbers of 8 bytes\n"));
  CHECK(has("  parameters  75 trained, 8 state; "));
  CHECK(has(" per sample of a micro-batch, with a * ("));
  CHECK(has("  scratch     80.00 B and 8.00 B per sample\n"));
  CHECK(has("  statistics  16 doubles per leaf\n"));
  CHECK(has("segment 0\n    operations"));
  CHECK(has("dw\nsegment 1\n%1  batch_normalization  "));
  CHECK(has("dw, adds to dx of %0\n%2  add  "));
  CHECK(has("stores dx of %1, %0\n%3  affine  "));
  CHECK(has("  batch_normalization/moving_mean (4,) @ 128, state\n"));
}

TEST_CASE("what has no kernel is marked, and printing is the same text") {
  using tiny = sequential<input<2>, dense<2>>;
  const std::string text = plan_text<training<tiny>, beginner>();
  CHECK(text.find("%0  affine (no kernel)  ") != std::string::npos);
  std::ostringstream out;
  print_plan<training<tiny>, beginner>(out);
  CHECK(out.str() == text);
}

TEST_CASE("no kernel takes the last activation without the loss where there is a joint kernel for the two") {
  const auto groups = []<class Network>(Network) {
    const std::string text = plan_text<program<Network, binary_crossentropy<>, int, type_list<>>, greedy>();
    const std::size_t end = text.rfind(" + binary_crossentropy  ");
    if (end == std::string::npos) return std::string("the loss is alone");
    const std::size_t begin = text.rfind('%', text.rfind('\n', end) + 3);
    return text.substr(begin, end - begin);
  };
  CHECK(groups(sequential<input<4>, dense<3, relu>, dense<2, sigmoid>>{}) == "%1  sigmoid");
  CHECK(groups(sequential<input<4, 4, 1>, conv2d<2, 3, sigmoid>>{}) == "%1  sigmoid");
  CHECK(groups(sequential<input<4>, dense<2>, batch_norm<>, activation<sigmoid>>{}) == "%2  sigmoid");
  CHECK(groups(sequential<input<4>, residual<dense<4>>, activation<sigmoid>>{}) == "%2  sigmoid");
  CHECK(groups(sequential<input<4>, dense<3, relu>, dense<2>>{}) == "%1  affine");

  // Fuses views after an element-wise activation, and after softmax if they keep the last axis.
  CHECK(groups(sequential<input<4, 4, 1>, conv2d<2, 3, sigmoid>, flatten>{}) == "%1  sigmoid + flatten");
  CHECK(groups(sequential<input<4>, dense<6, sigmoid>, reshape<2, 3>, reshape<3, 2>>{}) == "%1  sigmoid + reshape + reshape");
  CHECK(groups(sequential<input<4, 4, 1>, conv2d<2, 4, softmax>, flatten>{}) == "%1  softmax + flatten");
  CHECK(groups(sequential<input<4, 4, 1>, conv2d<2, 3, softmax>, flatten>{}) == "the loss is alone");
  CHECK(groups(sequential<input<4>, dense<4>, flatten>{}) == "the loss is alone");
}
