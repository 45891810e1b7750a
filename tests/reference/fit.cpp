// The ten steps of a recorded model as a user takes them: trainer, data pipeline, fit.
#include <strata/cpu/cpu.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>
#include <strata/metrics/accuracy.hpp>
#include <strata/optimizers/adam.hpp>
#include <strata/train/trainer.hpp>

#include "formula.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
struct keep_losses {
  std::vector<double> losses;
  void on_batch_end(training_state& state) { losses.push_back(state.loss); }
};
}  // namespace

TEST_CASE("fit takes the recorded steps") {
  using deep = sequential<input<784>, dense<64, relu>, dense<64, relu>, dense<10, softmax>>;
  recording recorded("model_mlp_deep");
  const nlohmann::json settings = recorded.settings("mlp_deep");
  constexpr std::size_t batch = 8, samples = 11 * batch;
  const std::vector<float> inputs = generated_inputs<float>(recorded, settings, samples * 784);
  const std::vector<std::int32_t> labels = generated_labels(recorded, settings, samples, 10);

  trainer model{deep{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, one_device{{.threads = 2}}};
  constexpr const auto& layout = layout_of_program<decltype(model)::program_type>;
  std::vector<float> weights(std::size_t(layout.size));
  const std::vector<std::string> names = parameter_names_of<deep>();
  for (int s = 0; s < layout.count; ++s) {
    const auto values =
        generated_parameter<float>(recorded, settings, names[std::size_t(s)], std::size_t(layout.slots[s].what.extents.size()));
    std::ranges::copy(values, weights.begin() + layout.slots[s].offset);
  }
  model.set_parameters(weights);

  // Batch 0 is not among the steps.
  const std::vector<float> steps(inputs.begin() + batch * 784, inputs.end());
  const auto source =
      data::from_tensor_slices(data::array<float, shape{784}>(steps), std::vector(labels.begin() + batch, labels.end()));
  keep_losses kept;
  const training_history past = model.fit(source | data::batch<batch>, kept, verbosity::off);
  const std::vector<double> expected = recorded.tensor("adam/losses");
  compare<double>("adam/losses", kept.losses, expected, 1e-5);

  double mean = 0;
  for (double loss : expected) mean += loss / double(expected.size());
  CHECK(past["loss"].at(0) == doctest::Approx(mean).epsilon(1e-5));
}
