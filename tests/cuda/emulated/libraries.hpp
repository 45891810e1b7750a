// Emulated libraries that can do everything, or less, and devices for networks that use them.
#pragma once
#include "compare.hpp"

#include <strata/cuda/cuda.hpp>
#include <string>
#include <tuple>

#include "unit/error_of.hpp"

namespace strata::test {
using namespace core;

/// The activation of a layer; linear if there is none.
template <class... A>
using activation_of = std::tuple_element_t<0, std::tuple<A..., linear>>;

/// Whether a library truncates operands that the policy would round. On a device, libraries pass floats to tensor cores
/// unchanged, which ignore the bits that TF32 does not have. Such kernels are tested with operands that lack those bits.
template <class P>
inline constexpr bool drops_bits = false;
#if defined(__CUDACC__)
template <>
inline constexpr bool drops_bits<precision::tf32> = true;
#endif

/// Sets what the emulated libraries can do during its lifetime.
struct library_that {
  library_that([[maybe_unused]] bool has_algorithms, [[maybe_unused]] bool has_epilogues) {
    machine::library_choices::the().use_file({});
#if !defined(__CUDACC__)
    machine::emulate_blas() = {has_epilogues, has_algorithms};
    machine::emulate_dnn() = {has_epilogues, has_algorithms};
#endif
  }
  library_that(const library_that&) = delete;
  library_that& operator=(const library_that&) = delete;
  ~library_that() {
    machine::library_choices::the().use_file({});
#if !defined(__CUDACC__)
    machine::emulate_blas() = {};
    machine::emulate_dnn() = {};
#endif
  }
};

/// A strategy with the first `count` devices; batches have four leaves.
inline one_device<cuda> on_devices(int count) {
  cuda_options options{.devices = {}, .leaves = 4};
  for (int i = 0; i < count; ++i) options.devices.push_back(i);
  return {options};
}

}  // namespace strata::test
