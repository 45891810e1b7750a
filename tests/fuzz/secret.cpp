// The secret of a training, from STRATA_SECRET or a file.
#include <strata/net/training_secret.hpp>

#include "fuzz.hpp"
using namespace strata;

namespace {
std::vector<std::string> seeds() { return {"0123456789abcdef0123456789ABCDEF", "0123456789abcdef0123456789abcdef\n", "short"}; }

void read(std::string_view input) {
  const training_secret secret{std::string(input)};
  fuzz::accepted([&] { fuzz::check(training_secret(secret.digits()).digits() == secret.digits()); });
}

const fuzz::target secret{"secret", seeds, read};
}  // namespace
