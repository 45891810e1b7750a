// Files of save_position. A position that was read names one that the source can reach.
#include <strata/data/core/position_file.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/shuffle.hpp>

#include "fuzz.hpp"
using namespace strata;
using namespace strata::core;

namespace {
auto source() {
  return data::from_tensor_slices(data::array<float, shape{1}>(std::vector<float>{1, 2, 3, 4, 5})) | data::shuffle(5) |
         data::batch<2>;
}

std::vector<std::string> seeds() {
  auto batches = source();
  return {fuzz::written([&](const auto& path) { data::save_position(batches, path); }), fuzz::written([&](const auto& path) {
            auto at = batches.begin();
            ++at;
            data::save_position(batches, path);
          })};
}

void read(std::string_view input) {
  const fuzz::file file(input);
  auto batches = source();
  data::restore_position(batches, file.path());
  std::size_t samples = 0;
  for (const auto& batch : batches) samples += std::size_t(batch.count);
  fuzz::check(samples <= 5);
}

const fuzz::target data_position{"data_position", seeds, read};
}  // namespace
