// Dropout with the same masks as all other backends: philox in integer operations.
#pragma once
#include <array>
#include <cstdint>
#include <strata/layers/dropout.hpp>
#include <strata/xla/emitter/emission.hpp>

namespace strata::stablehlo {

/// A generator of philox (base/random.hpp) whose key is known at run time: two words of ui32, scalars.
struct philox_key {
  tensor low, high;

  explicit philox_key(tensor key);  // ui64
  philox_key(tensor low_word, tensor high_word) : low(low_word), high(high_word) {}
  /// The four words for each counter, whose words c[0] to c[3] have the same type, of ui32.
  std::array<tensor, 4> operator()(std::array<tensor, 4> c) const;
  /// Same as philox::fork.
  philox_key fork(std::uint64_t stream) const;
};

namespace detail {
tensor dropout_forward(operation_call& c, double rate, shape noise);
}

template <decimal Rate, shape Noise>
struct emission<dropout<Rate, Noise>> {
  static tensor forward(operation_call& c) { return detail::dropout_forward(c, Rate.value(), Noise); }
  static void backward(operation_call& c) { c.set_dx(c.dy * c.saved[0]); }
};

}  // namespace strata::stablehlo

#if STRATA_DEFINES
#include <strata/xla/emitter/dropout.ipp>
#endif
