// The layer normalization, and what adapt sets, against the recordings.
#include <strata/strata.hpp>

#include "layer_check.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

template <int... Extents>
void check(recording& recorded, const std::string& name) {
  using net = sequential<input<Extents...>, normalization>;
  check_layer<normalization, shape{Extents...}>(recorded, name);

  trainer model{net{}, sgd{}, mean_squared_error{}, precision::f64{}};
  const std::vector<double> x = recorded.tensor(name + "/input");
  model.adapt(data::from_tensor_slices(data::array<double, shape{Extents...}>(x)) | data::batch<4, double>);
  for (const parameter_slot& s : std::span(layout_of<typename net::items>.slots, 2)) {
    const std::vector<double> expected = recorded.tensor(name + '/' + s.what.name);
    compare<double>(s.what.name, model.parameters().subspan(std::size_t(s.offset), expected.size()), expected, 1e-6);
  }
}

}  // namespace

TEST_CASE("normalization") {
  recording recorded("normalization");
  check<5>(recorded, "features");
  check<4, 3, 3>(recorded, "image");
  check<1>(recorded, "one");
  check<4>(recorded, "constant");
  CHECK(recorded.forgotten() == "");
}
