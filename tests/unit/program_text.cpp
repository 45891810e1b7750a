// The text that processes of one training compare: every setting of the program and its optimizer, the same with every compiler.
#include <doctest/doctest.h>

#include <strata/control/member.hpp>
#include <strata/program/program_text.hpp>
#include <strata/strata.hpp>
#include <string>
#include <vector>

using namespace strata;
using namespace strata::core;
using detail::text_of_optimizer;
using detail::text_of_program;

namespace {

template <class Network, class Loss = mean_squared_error, class Precision = precision::f32, class... Metrics>
std::string text() {
  return text_of_program<program<Network, Loss, sgd, type_list<Metrics...>, Precision>>();
}
template <class... Layers>
using net = sequential<input<12, 12, 3>, Layers..., flatten, dense<2, no_bias>>;

/// The programs of two workers, as the error quotes them.
std::string differences(const std::string& a, const std::string& b) {
  const auto [there, here] = control::differences_of(a, b);
  return there + " | " + here;
}

}  // namespace

TEST_CASE("a program in words") {
  using image = sequential<input<6, 6, 1>, residual<conv2d<1, 3, same_padding, relu, kernel_regularizer<l2<>>>>, batch_norm<>,
                           flatten, dense<2, softmax, kernel_initializer<constant<0.5_r>>>>;
  CHECK(text<image, huber<2>, precision::f32, accuracy, sparse_top_k_categorical_accuracy<3>>() ==
        "float32, node 0 input(6 6 1) 6x6x1, node 1 convolution(1 3 3 1 1 1 1 1 1 1) 6x6x1, parameter kernel 3x3x1x1 "
        "glorot_uniform "
        "l1 0 l2 0.01, parameter bias 1 zeros, node 2 relu 6x6x1, node 3 add 6x6x1 of 2 0, node 4 batch_normalization(0.99 0.001 "
        "1 1 0) "
        "6x6x1, parameter gamma 1 ones, parameter beta 1 zeros, state moving_mean 1 zeros, state moving_variance 1 ones, node 5 "
        "flatten 36, node 6 affine(2 1) 2, parameter kernel 36x2 constant(0.5), parameter bias 2 zeros, node 7 softmax 2, node 8 "
        "huber(2) 2, metric accuracy, metric sparse_top_k_categorical_accuracy(3)");
}

TEST_CASE("each choice in a program shows, and only where it is") {
  const std::string plain = text<net<conv2d<4, 3>>>();
  CHECK(plain == text<net<conv2d<4, 3, valid_padding>>>());
  CHECK(differences(text<net<activation<relu>>>(), text<net<activation<tanh_activation>>>()) ==
        "node 1 relu 12x12x3 | node 1 tanh 12x12x3");
  CHECK(differences(text<net<activation<elu<>>>>(), text<net<activation<elu<0.5_r>>>>()) ==
        "node 1 elu(1) 12x12x3 | node 1 elu(0.5) 12x12x3");
  CHECK(differences(plain, text<net<conv2d<4, 3, bias_initializer<ones>>>>()) ==
        "parameter bias 4 zeros | parameter bias 4 ones");
  CHECK(differences(plain, text<net<conv2d<4, 3>>, huber<>>()) == "node 4 mean_squared_error 2 | node 4 huber(1) 2");
  CHECK(differences(text<net<>, huber<>>(), text<net<>, huber<3>>()) == "node 3 huber(1) 2 | node 3 huber(3) 2");
  CHECK(differences(text<net<>, categorical_crossentropy<>>(), text<net<>, categorical_crossentropy<label_smoothing<0.1_r>>>()) ==
        "node 3 categorical_crossentropy(0 0) 2 | node 3 categorical_crossentropy(0 0.1) 2");
  CHECK(differences(plain, text<net<conv2d<4, 3>>, mean_squared_error, precision::mixed_bf16>()) ==
        "float32 | float32 with products of bf16");
  CHECK(differences(plain, text<net<conv2d<4, 3>>, mean_squared_error, precision::tf32>()) ==
        "float32 | float32 with products of tf32");
  CHECK(differences(plain, text<net<conv2d<4, 3>>, mean_squared_error, precision::f64>()) == "float32 | float64");
  for (const std::string& other :
       {text<net<conv2d<4, 3, same_padding>>>(), text<net<conv2d<4, 3, dilation<2>>>>(), text<net<conv2d<4, 3, no_bias>>>(),
        text<net<conv2d<4, 3, kernel_initializer<constant<0.5_r>>>>>(), text<net<conv2d<4, 3, kernel_initializer<he_normal>>>>(),
        text<net<conv2d<4, 3, kernel_regularizer<l1<>>>>>(), text<net<conv2d<4, 3>, dropout<0.5_r>>>(),
        text<net<conv2d<4, 3>>, mean_squared_error, precision::f32, mean_absolute_error>()})
    CHECK(other != plain);
  CHECK(text<net<dropout<0.5_r>>>() != text<net<dropout<0.25_r>>>());
  CHECK(text<net<batch_norm<>>>() != text<net<batch_norm<momentum<0.9_r>>>>());
  CHECK(text<net<max_pool2d<3, stride<1>>, zero_padding2d<1>>>() != text<net<max_pool2d<3, stride<1>>, zero_padding2d<2, 0>>>());
}

TEST_CASE("each setting of an optimizer shows") {
  CHECK(text_of_optimizer(sgd{.learning_rate = 0.1, .momentum = 0.9}) ==
        "optimizer sgd, 1 slots, learning_rate 0.1, momentum 0.9, nesterov 0, weight_decay 0, clipnorm 0, clipvalue 0, "
        "global_clipnorm 0");
  const auto other = [](const auto& a, const auto& b) { return differences(text_of_optimizer(a), text_of_optimizer(b)); };
  CHECK(other(adam{}, adam{.beta_1 = 0.8}) == "beta_1 0.9 | beta_1 0.8");
  CHECK(other(adam{}, adam{.beta_2 = 0.99}) == "beta_2 0.999 | beta_2 0.99");
  CHECK(other(adamw{}, adamw{.epsilon = 1e-8}) == "epsilon 1e-07 | epsilon 1e-08");
  CHECK(other(adamw{}, adamw{.weight_decay = 0.005}) == "weight_decay 0.004 | weight_decay 0.005");
  CHECK(other(adam{}, adam{.clipvalue = 1}) == "clipvalue 0 | clipvalue 1");
  CHECK(other(sgd{.momentum = 0.5}, sgd{.momentum = 0.5, .nesterov = true}) == "nesterov 0 | nesterov 1");
  CHECK(other(rmsprop{}, rmsprop{.rho = 0.8}) == "rho 0.9 | rho 0.8");
  CHECK(other(lamb{}, lamb{.epsilon = 1e-6}) == "epsilon 1e-07 | epsilon 1e-06");
  CHECK(other(nadam{}, nadam{.beta_1 = 0.8}) == "beta_1 0.9 | beta_1 0.8");
  CHECK(other(adamax{}, adamax{.beta_2 = 0.99}) == "beta_2 0.999 | beta_2 0.99");
  CHECK(other(adagrad{}, adagrad{.initial_accumulator_value = 0}) ==
        "initial_accumulator_value 0.1 | initial_accumulator_value 0");
  CHECK(other(adadelta{}, adadelta{.rho = 0.9}) == "rho 0.95 | rho 0.9");
  CHECK(other(lion{}, lion{.beta_2 = 0.999}) == "beta_2 0.99 | beta_2 0.999");
  CHECK(other(ftrl{}, ftrl{.beta = 1}) == "beta 0 | beta 1");
  CHECK(other(adam{}, lamb{}).find("optimizer adam") == 0);
}

TEST_CASE("each setting of a schedule shows") {
  const std::string text = text_of_optimizer(sgd{.learning_rate = exponential_decay{1, 4, 0.5}});
  CHECK(text.find("learning_rate exponential_decay 1, 0.840896415 at step 1, 0.707106781 at step 2, 0.5 at step 4, ") !=
        std::string::npos);
  const auto other = [](const learning_rate_schedule& a, const learning_rate_schedule& b) {
    return differences(text_of_optimizer(sgd{.learning_rate = a}), text_of_optimizer(sgd{.learning_rate = b}));
  };
  CHECK(other(exponential_decay{1, 4, 0.5}, 1.).find("learning_rate exponential_decay 1, 0.84") == 0);
  CHECK(other(piecewise_constant_decay{{5000}, {1, 0.5}}, piecewise_constant_decay{{3000}, {1, 0.5}}) ==
        "1 at step 4096 | 0.5 at step 4096");
  CHECK(other(cosine_decay{1, 1000}, cosine_decay{1, 1001}).find(" at step 2, ") != std::string::npos);
  CHECK(other(polynomial_decay{1, 1000, 0.1}, polynomial_decay{1, 1000, 0.1, 2}).find("0.9991 at step 1, ") == 0);
  CHECK(other(cosine_decay_restarts{1, 1000}, cosine_decay_restarts{1, 1000, 2, 0.5}).find(" at step 1024, ") !=
        std::string::npos);

  const std::vector<double> rates = {0.1, 0.01};
  const auto of_two_steps = [rates](long step) { return rates.at(std::size_t(step)); };
  CHECK(other(of_two_steps, 0.1) == other(0.1, 0.1));  // later rates are not compared
}

TEST_CASE("what differs of two texts") {
  CHECK(differences("a, b, c", "a, x, c") == "b | x");
  CHECK(differences("a, b", "a, b, c") == "b | b, c");
  CHECK(differences("a; b, c", "b, c") == "a; b | b");
  CHECK(differences("one", "other") == "one | other");
  CHECK(differences("a, b, b, c", "a, b, c") == "b, c | c");
  CHECK(differences("same", "same") == "same | same");
}
