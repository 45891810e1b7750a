// Dropout on vectors. It draws the same masks as the reference backend.
#pragma once
#include <algorithm>
#include <strata/base/rounded.hpp>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/simd/small_indices.hpp>
#include <strata/cpu/simd/vector_philox.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/dropout.hpp>

namespace strata {

namespace simd {

/// One random word for each lane, as integers of the width of T.
template <class T>
STRATA_INLINE inline auto load_words(const std::uint32_t* p) {
  typedef std::uint32_t narrow __attribute__((vector_size(4 * lanes<T>)));
  typedef std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t> element;
  typedef element wide __attribute__((vector_size(vector_bytes)));
  narrow v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, wide);
}

/// One sample: y = kept ? x * scale : 0, and `kept` as bytes.
template <class T>
[[gnu::noinline]] void drop_out(const T* x, int size, philox generator, std::int64_t sample, std::uint32_t limit, T scale, T* y,
                                std::int8_t* kept) {
  constexpr int L = lanes<T>;
  for (int first = 0; first < size; first += words_at_a_time) {
    alignas(vector_bytes) std::uint32_t words[words_at_a_time];
    philox_words(generator, std::uint32_t(first / 4), std::uint64_t(sample), words);
    const auto vector = [&](int i, auto lane) STRATA_INLINE {
      const integers<T> stays = (integers<T>)(load_words<T>(words + i) >= limit);
      lane.store(y + first + i, lane.load(x + first + i) * (stays ? broadcast(scale) : broadcast(T(0))));
      store_indices<T>(kept + first + i, stays & 1, lane);
    };
    if (first + words_at_a_time <= size) {
      STRATA_UNROLL
      for (int i = 0; i < words_at_a_time / L; ++i) {
        vector(i * L, whole_vector<T>{});
      }
    } else
      for_vectors<T>(size - first, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE { vector(int(i), lane); });
  }
}

template <class T>
[[gnu::noinline]] void drop_out_gradient(const T* dy, int size, const std::int8_t* kept, T scale, T* dx, bool add) {
  for_vectors<T>(size, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
    const integers<T> stays = load_indices<T>(kept + i, lane);
    put<T>(lane, dx + i, lane.load(dy + i) * (stays != 0 ? broadcast(scale) : broadcast(T(0))), add);
  });
}

}  // namespace simd

namespace core {
/// x, y, dy, dx: (count, shape of the input). saved: one byte for each element of the noise.
template <decimal Rate, shape Noise, class P, shape In>
struct kernel<cpu, dropout<Rate, Noise>, P, In> {
  using operation = dropout<Rate, Noise>;
  using T = typename P::value_type;
  static constexpr int size = In.size(), noise = operation::noise(In).size();
  static constexpr kernel_traits traits{.saved = (noise + int(sizeof(T)) - 1) / int(sizeof(T)), .reads_input = false};
  static constexpr T scale = T(1 / (1 - operation::rate));
  static constexpr auto limit = std::uint32_t(operation::rate * 0x1p32);

  static std::int8_t* kept(const operands<T>& o, int n) {
    return reinterpret_cast<std::int8_t*>(o.saved + std::ptrdiff_t(n) * traits.saved);
  }
  static void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      const T* const x = o.x[0] + std::ptrdiff_t(n) * size;
      T* const y = o.y + std::ptrdiff_t(n) * size;
      if constexpr (noise == size)
        simd::drop_out(x, size, o.random, o.first_sample + n, limit, scale, y, kept(o, n));
      else {
        for (int i = 0; i < noise; ++i) kept(o, n)[i] = operation::keeps(o.random, o.first_sample + n, i);
        for (int i = 0; i < size; ++i) y[i] = x[i] * factor(o, n, i);
      }
    }
  }
  static void infer(const operands<T>& o) { simd::copy_rows(o.x[0], size, o.y, size, o.count, size); }
  static void backward(const operands<T>& o) {
    for (int n = 0; o.dx[0] && n < o.count; ++n) {
      const T* const dy = o.dy + std::ptrdiff_t(n) * size;
      T* const dx = o.dx[0] + std::ptrdiff_t(n) * size;
      if constexpr (noise == size)
        simd::drop_out_gradient(dy, size, kept(o, n), scale, dx, o.adds_dx[0]);
      else
        for (int i = 0; i < size; ++i) {
          const T g = detail::rounded(dy[i] * factor(o, n, i));
          dx[i] = o.adds_dx[0] ? dx[i] + g : g;
        }
    }
  }

 private:
  static T factor(const operands<T>& o, int n, int i) { return kept(o, n)[operation::template noise_of<In>(i)] ? scale : T{}; }
};
}  // namespace core

}  // namespace strata
