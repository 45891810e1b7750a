// A position of a training as one process sends it to others: names, values, and what they mean.
#include <strata/train/position_text.hpp>

#include "fuzz.hpp"
using namespace strata;
using namespace strata::core;

namespace {
std::vector<std::string> seeds() {
  training_position at{.step = 7,
                       .epoch = 2,
                       .in_epoch = true,
                       .metric_sums = {{1, 2}, {0.5, 3}},
                       .data = data_position{1, 3},
                       .callbacks = {{"early_stopping/0/wait", 1}}};
  at.past.add(0, {{"loss", 0.5}, {"val_loss", 0.25}});
  at.past.add(1, {{"loss", 1e-9}});
  at.new_learning_rate = 0.1, at.loss_weights = {0.5, 2};
  return {detail::packed(detail::texts_of({})), detail::packed(detail::texts_of(at))};
}

std::vector<std::string> larger(int count) {
  training_position at;
  for (int i = 0; i < count; ++i) {
    at.past.add(i, {{"loss", 0.5}});
    at.metric_sums.push_back({0.5, 1});
  }
  return {detail::packed(detail::texts_of(at))};
}

void read(std::string_view input) {
  const detail::named_texts values = detail::unpacked(input);
  fuzz::accepted([&] { fuzz::check(detail::unpacked(detail::packed(values)) == values); });
  const detail::named_texts position = detail::texts_of(detail::position_of(values, "the chief"));
  fuzz::accepted([&] { fuzz::check(detail::texts_of(detail::position_of(position, "again")) == position); });
}

const fuzz::target training_position_text{"training_position", seeds, read, larger};
}  // namespace
