// How the programs of tests print the outcome of a training.
#pragma once
#include <bit>
#include <cstdint>
#include <iostream>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/hash.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/communicator.hpp>
#include <string>

namespace strata::test {

/// A digest of the bits of all elements.
inline std::string digest_of(std::span<const float> numbers) {
  detail::fnv1a hash;
  for (const float w : numbers) hash.add(std::uint64_t{std::bit_cast<std::uint32_t>(w)});
  return detail::formatted("%016llx", static_cast<unsigned long long>(hash.value()));
}

/// To be called in a catch block: prints the error, and returns the exit status of the program.
inline int report_error() {
  try {
    throw;
  } catch (const communication_error& e) {
    std::cout << "communication_error: " << e.what() << std::endl;
    return 3;
  } catch (const strata_error& e) {
    std::cout << "error: " << e.what() << std::endl;
    return 2;
  }
}

}  // namespace strata::test
