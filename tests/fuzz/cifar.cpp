// CIFAR-10 and CIFAR-100 files.
#include <strata/data/sets/cifar.hpp>

#include "fuzz.hpp"
using namespace strata;

namespace {
std::vector<std::string> seeds() {
  return {fuzz::with_choice(0, std::string(2 * 3073, '\1')), fuzz::with_choice(1, std::string(3074, '\1'))};
}

std::vector<std::string> larger(int count) { return {fuzz::with_choice(0, std::string(std::size_t(count) / 32 * 3073, '\1'))}; }

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  const fuzz::file file(chosen.rest);
  const std::string name = file.name();
  const auto images = chosen.number & 1 ? data::detail::read_cifar(file.folder(), {name.c_str()}, 2, {{0, 20}, {1, 100}}, 1)
                                        : data::detail::read_cifar(file.folder(), {name.c_str()}, 1, {{0, 10}}, 0);
  fuzz::check(images.size() == chosen.rest.size() / (chosen.number & 1 ? 3074 : 3073));
}

const fuzz::target cifar{"cifar", seeds, read, larger};
}  // namespace
