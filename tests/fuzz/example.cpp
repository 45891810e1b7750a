// needs: protozero
// tf.train.Example: every feature by its kind, and example_builder with these features.
#include <strata/data/formats/example.hpp>
#include <strata/data/formats/example_builder.hpp>

#include "fuzz.hpp"
using namespace strata;

namespace {
std::vector<std::string> seeds() {
  data::example_builder e;
  const std::vector<std::string> all{fuzz::bytes_of(e.serialized()),
                                     fuzz::bytes_of(e.number("x", 0.5f).integer("label", -3).text("name", "cat").serialized())};
  e.clear();
  const std::vector<float> floats{1, 2, 3};
  const std::vector<std::int64_t> integers{1, -1, 1 << 20};
  return {all[0], all[1], fuzz::bytes_of(e.floats("x", floats).integers("y", integers).bytes_list("z", {}).serialized())};
}

std::vector<std::string> larger(int count) {
  data::example_builder e;
  for (int i = 0; i < count; ++i) e.number("feature " + std::to_string(i), 0.5f);
  return {fuzz::bytes_of(e.serialized())};
}

/// The features of an Example that can be read, each by its kind.
data::example_builder features_of(const data::example& e) {
  data::example_builder all;
  std::vector<std::string_view> keys = e.keys();
  keys.resize(std::min(keys.size(), std::size_t(64)));  // the time of a lookup grows with their number
  for (const std::string_view key : keys) {
    fuzz::check(e.contains(key));
    try {
      switch (e.kind(key)) {
        case data::feature_kind::bytes:
          all.bytes_list(key, e.bytes_list(key));
          break;
        case data::feature_kind::floats:
          all.floats(key, e.floats(key));
          break;
        case data::feature_kind::integers:
          all.integers(key, e.integers(key));
          break;
        case data::feature_kind::none:
          break;
      }
      e.size(key);
      fuzz::look_at(e.floats<3>(key));
    } catch (const strata::strata_error&) {  // the next feature may be good
    }
  }
  return all;
}

void read(std::string_view input) {
  data::example_builder all = features_of(data::example(std::as_bytes(std::span(input))));
  fuzz::accepted([&] {
    const std::string copy = fuzz::bytes_of(all.serialized());
    data::example_builder again = features_of(data::example(std::as_bytes(std::span(copy))));
    fuzz::check(fuzz::bytes_of(again.serialized()) == copy);
  });
  data::example(std::as_bytes(std::span(input))).text("name");
}

const fuzz::target example{"example", seeds, read, larger};
}  // namespace
