// Weights of one network in another one: those that fit are copied, the others are listed.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <strata/strata.hpp>
#include <strata/train/transfer_weights.hpp>
#include <strata/train/weights_file.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using strata::test::error_of;

namespace {

using digits = sequential<input<8, 8, 1>, conv2d<4, 3, relu>, batch_norm<>, flatten, dense<6, relu>, dense<10, softmax>>;
using parity = sequential<input<8, 8, 1>, conv2d<4, 3, relu>, batch_norm<>, flatten, dense<6, relu>, dense<1, sigmoid>>;
/// One more layer at the start: the numbers in names increase by one.
using deeper = sequential<input<8, 8, 1>, conv2d<1, 1>, conv2d<4, 3, relu>, flatten, dense<6, relu>, dense<1, sigmoid>>;

template <class Network>
auto make(std::uint64_t start) {
  if constexpr (Network::output_shape.last() == 1)
    return trainer{Network{}, adam{}, binary_crossentropy{}, seed(start)};
  else
    return trainer{Network{}, adam{}, sparse_categorical_crossentropy{}, seed(start)};
}
/// The values of one parameter.
template <class Trainer>
std::vector<float> of(const Trainer& model, const std::string& name) {
  using network = typename Trainer::network;
  const auto names = parameter_names_of<network>();
  const auto at = std::size_t(std::ranges::find(names, name) - names.begin());
  const parameter_slot& s = layout_of<typename network::items>.slots[at];
  const auto part = model.parameters().subspan(std::size_t(s.offset), std::size_t(s.what.extents.size()));
  return {part.begin(), part.end()};
}
std::string text_of(const transfer_report& report) {
  std::ostringstream out;
  out << report;
  return out.str();
}

}  // namespace

TEST_CASE("by name: all but the head") {
  const auto from = make<digits>(1);
  auto to = make<parity>(2);
  const auto head = of(to, "dense_1/kernel");
  const transfer_report report = transfer_weights(from, to);
  CHECK(text_of(report) ==
        "8 of 10 parameters copied\n"
        "  skipped dense_1/kernel: (6, 10) there, (6, 1) here\n"
        "  skipped dense_1/bias: (10,) there, (1,) here\n");
  for (const std::string& name : report.copied) CHECK(of(to, name) == of(from, name));
  CHECK(of(to, "dense_1/kernel") == head);
  const std::vector<float> x(64, 0.5f);
  std::vector<float> before(1), after(1);
  to.predict(x, before);
  transfer_weights(make<digits>(3), to);
  to.predict(x, after);
  CHECK(before != after);  // derived layouts of the weights are new, too
}

TEST_CASE("the name of a file is a path, a string or a literal") {
  const test::scratch_folder folder("transfer-names");
  const auto path = folder / "a.safetensors";
  const auto from = make<digits>(1);
  from.save_weights(path);
  auto to = make<parity>(2);
  for (const transfer_report& report :
       {transfer_weights(path, to), transfer_weights(path.string(), to), transfer_weights(path.c_str(), to)})
    CHECK(report.copied.size() == 8);
  CHECK(error_of([&] { transfer_weights("no such file.safetensors", to); }).starts_with("cannot read no such file.safetensors"));
}

TEST_CASE("by position: layers with parameters are counted, whatever their names") {
  const auto from = make<parity>(1);
  auto to = make<deeper>(2);
  CHECK(transfer_weights(from, to).copied ==
        std::vector<std::string>{"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"});
  auto by_position = make<digits>(4);
  const transfer_report report = transfer_weights(make<digits>(5), by_position, transfer_by::position);
  CHECK(report.copied.size() == 10);
  CHECK(of(by_position, "dense/kernel") == of(make<digits>(5), "dense/kernel"));
  auto shifted = make<deeper>(2);
  const transfer_report misfit = transfer_weights(make<digits>(5), shifted, transfer_by::position);
  CHECK(misfit.skipped.front().first == "conv2d/kernel");
  CHECK(misfit.skipped.front().second == "(3, 3, 1, 4) there, (1, 1, 1, 1) here");
}

TEST_CASE("from a file; another precision and a damaged file") {
  const test::scratch_folder folder("transfer");
  const auto file = folder.path / "digits.safetensors";
  const auto from = make<digits>(1);
  from.save_weights(file);
  auto to = make<parity>(2);
  CHECK(transfer_weights(file, to).copied.size() == 8);
  CHECK(of(to, "conv2d/kernel") == of(from, "conv2d/kernel"));

  trainer wide{parity{}, adam{}, binary_crossentropy{}, precision::f64{}};
  const std::vector<double> before(wide.parameters().begin(), wide.parameters().end());
  const transfer_report none = transfer_weights(file, wide);
  CHECK(none.copied.empty());
  CHECK(none.skipped.front().second == "numbers of another precision");
  CHECK(std::ranges::equal(before, wide.parameters()));

  std::filesystem::resize_file(file, 700);
  CHECK(error_of([&] { transfer_weights(file, to); }).find("digits.safetensors") != std::string::npos);
}
