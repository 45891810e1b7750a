// Snapshots of a training. Their checksum can be corrected, so that inputs get past it.
#include <strata/io/crc32c.hpp>
#include <strata/train/snapshot.hpp>

#include <array>
#include <cstring>

#include "fuzz.hpp"
using namespace strata;
using namespace strata::core;

namespace {
struct small_fit final : resumable_fit {
  std::array<float, 4> kernel{1, 2, 3, 4}, slot{};
  training_position at{};

  std::vector<std::string> description() const override { return {"seed 1", "dense/kernel (2, 2)"}; }
  std::string plan() const override { return ""; }
  std::size_t element_size() const override { return sizeof(float); }
  std::vector<array> arrays() override {
    return {{"dense/kernel", {2, 2}, std::as_writable_bytes(std::span(kernel))},
            {"optimizer/0/dense/kernel", {2, 2}, std::as_writable_bytes(std::span(slot))}};
  }
  training_position position() override { return at; }
  void resume_at(const training_position& there) override { at = there; }
  void drop_rounding_errors() override {}
};

std::string snapshot_of(small_fit& fit) {
  return fuzz::written([&](const auto& path) { save_snapshot(path, fit); });
}

std::vector<std::string> seeds() {
  small_fit begun, later;
  later.at = {.step = 7,
              .epoch = 1,
              .in_epoch = true,
              .metric_sums = {{1, 2}},
              .data = data_position{1, 3},
              .learning_rate = 0.5,
              .callbacks = {{"early_stopping/0/wait", 1}}};
  later.at.past.add(0, {{"loss", 0.5}});
  return {fuzz::with_choice(0, snapshot_of(begun)), fuzz::with_choice(1, snapshot_of(begun)),
          fuzz::with_choice(1, snapshot_of(later))};
}

std::vector<std::string> larger(int count) {
  small_fit fit;
  for (int i = 0; i < count; ++i) fit.at.past.add(i, {{"loss", 0.5}, {"accuracy", 0.25}});
  return {fuzz::with_choice(0, snapshot_of(fit))};
}

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  std::string bytes(chosen.rest);
  if (chosen.number & 1 && bytes.size() >= 4) {
    const std::uint32_t sum = io::crc32c(std::as_bytes(std::span(bytes)).first(bytes.size() - 4));
    std::memcpy(bytes.data() + bytes.size() - 4, &sum, sizeof sum);
  }
  small_fit fit, again;
  const fuzz::file file(bytes);
  const safetensors_metadata metadata = load_snapshot(file.path(), fit);
  fuzz::accepted([&] {
    fit.at = detail::position_of(metadata, "metadata");
    const fuzz::file copy(snapshot_of(fit));
    again.at = detail::position_of(load_snapshot(copy.path(), again), "metadata");
    fuzz::check(detail::texts_of(again.at) == detail::texts_of(fit.at));
    fuzz::check(fuzz::bytes_of(again.kernel) == fuzz::bytes_of(fit.kernel));
  });
}

const fuzz::target training_snapshot{"training_snapshot", seeds, read, larger};
}  // namespace
