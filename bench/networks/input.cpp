// Shuffled batches of MNIST's shape and size, bytes to floats.
#include "measure.hpp"

void strata::bench::measure_input(const runner& run) {
  constexpr int batch = 64;
  constexpr std::size_t count = 60'000;
  if (!run.wants("u8_28x28", batch, "input")) return;
  std::vector<std::uint8_t> pixels(count * data::digit_shape.size());
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = std::uint8_t(i * 2'654'435'761u >> 24);
  const std::vector<int> labels(count, 1);
  auto source = data::from_tensor_slices(data::array<std::uint8_t, data::digit_shape>(std::move(pixels)), labels) |
                data::scale(1.0 / 255) | data::shuffle(count) | data::batch<batch, data::drop_remainder>;
  auto at = source.begin();
  run.measure("u8_28x28", batch, "input", 1, 0, 0, [&] {
    if (at == source.end()) at = source.begin();
    [[maybe_unused]] volatile float first = (*at).x[0];
    ++at;
  });
}
