// Gradients with respect to the inputs of a graph against the recording.
#include <strata/strata.hpp>
#include <strata/train/input_gradients.hpp>
#include <strata/train/predictor.hpp>

#include "recorded.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

struct image : input<6, 6, 2> {};
struct numbers : input<3> {};
struct seen : node<image, conv2d<3, 3, relu>, batch_norm<>, max_pool2d<2>, flatten, dropout<0.5_r>> {};
struct both : node<concat<seen, numbers>, dense<5, tanh_activation>> {};
struct kind : node<both, dense<3, softmax>> {};
struct box : node<both, dense<2>> {};
using net = graph<kind, box>;

template <class Precision>
void check(recording& recorded) {
  using T = typename Precision::value_type;
  constexpr double tolerance = tolerance_of<T>;
  INFO(sizeof(T) << " bytes");
  trainer model{net{}, adam{}, compare<kind>(sparse_categorical_crossentropy{}),
                compare<box>(mean_squared_error{}, loss_weight(0.25)), Precision{}};
  std::vector<T> weights(model.parameters().begin(), model.parameters().end());
  const std::vector<std::string> names = parameter_names_of<net>();
  for (std::size_t i = 0; i < names.size(); ++i)
    std::ranges::copy(recorded.tensor<T>("weights/" + names[i]),
                      weights.data() + std::size_t(layout_of<net::items>.slots[i].offset));
  model.set_parameters(weights);

  const std::vector<T> images = recorded.tensor<T>("image"), three = recorded.tensor<T>("numbers"),
                       boxes = recorded.tensor<T>("box"), given = recorded.tensor<T>("given");
  const std::vector<std::int32_t> kinds = recorded.integers("kind");
  const auto [of_image, of_numbers] =
      model.template gradients<image, numbers>(of<image>(images), of<numbers>(three), of<kind>(kinds), of<box>(boxes));
  compare<T>("loss, image", of_image.values, recorded.tensor("gradients_of_loss/image"), tolerance);
  compare<T>("loss, numbers", of_numbers.values, recorded.tensor("gradients_of_loss/numbers"), tolerance);

  const predictor alone{net{}, model};
  const auto [by_image, by_numbers] = alone.template gradients<image, numbers>(of<image>(images), of<numbers>(three),
                                                                               of<box>(given), compare<box>(given_gradient{}));
  compare<T>("given, image", by_image.values, recorded.tensor("gradients_of_given/image"), tolerance);
  compare<T>("given, numbers", by_numbers.values, recorded.tensor("gradients_of_given/numbers"), tolerance);
}

}  // namespace

TEST_CASE("gradients of two inputs are those of Keras, of the weighted loss and of given gradients of an output") {
  recording recorded("input_gradients");
  check<precision::f64>(recorded);
  check<precision::f32>(recorded);
  CHECK(recorded.forgotten() == "");
}
