// Portable vectors of the width of the target: vector extensions of the compilers, and the few operations that these do not have.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <strata/base/link_checks.hpp>
#include <type_traits>
#include <utility>
#if defined(__AVX__)
// g++ 12 warns about uninitialised values inside its own AVX-512 header.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/// For functions and lambdas of a register block: `[&](auto i) STRATA_INLINE {...}`. A macro, because an attribute has no short
/// name otherwise.
#define STRATA_INLINE __attribute__((always_inline))

/// For a noinline function: g++ makes no copies of it for constant arguments of its callers.
#if defined(__clang__)
#define STRATA_ONE_COPY
#else
#define STRATA_ONE_COPY __attribute__((noclone))
#endif

/// In front of a loop over the vectors of a register block, whose number of iterations is a constant: from -O2 on, compilers
/// replace it by copies of its body, so that arrays of vectors stay in registers. g++ does not if `std::min(i, ...)` is in it.
#if defined(__clang__)
#define STRATA_UNROLL _Pragma("clang loop unroll(full)")
#else
#define STRATA_UNROLL _Pragma("GCC unroll 64")
#endif
#if defined(__CUDACC__)
// nvcc does not know this pragma and passes it on to the host compiler (1675); it also warns of loops after an `if constexpr`
// that returns (128).
#pragma nv_diag_suppress 1675, 128
#endif

namespace strata::simd {

/// The width of a vector and the number of vector registers of the target.
#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
#define STRATA_AVX512 1
inline constexpr int vector_bytes = 64, registers = 32;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32, registers = 16;
#elif defined(__aarch64__)
inline constexpr int vector_bytes = 16, registers = 32;
#else
inline constexpr int vector_bytes = 16, registers = 16;
#endif

#ifdef STRATA_COMPILED
// The library must be compiled for the vectors of the program: otherwise linking fails, on a symbol named after its target.
#if defined(STRATA_AVX512)
#define STRATA_TARGET built_for_avx512
#elif defined(__AVX2__) && defined(__FMA__)
#define STRATA_TARGET built_for_avx2_and_fma
#elif defined(__AVX__)
#define STRATA_TARGET built_for_avx
#elif defined(__FMA__) || defined(__aarch64__)
#define STRATA_TARGET built_for_128_bits_and_fma
#else
#define STRATA_TARGET built_without_march_native
#endif
}  // namespace strata::simd
namespace strata::compiled_library {
extern const int STRATA_TARGET;
[[gnu::used]] inline const int* const same_target = &STRATA_TARGET;
}  // namespace strata::compiled_library
namespace strata::simd {
#endif

template <class T>
inline constexpr int lanes = vector_bytes / int(sizeof(T));

namespace detail {
// A struct per element type, because both compilers drop vector_size from an alias of a dependent type.
template <class T>
struct vector_of;
template <>
struct vector_of<float> {
  typedef float type __attribute__((vector_size(vector_bytes)));
  typedef float unaligned __attribute__((vector_size(vector_bytes), aligned(4), may_alias));
  typedef std::int32_t integer __attribute__((vector_size(vector_bytes)));
  typedef std::int8_t bytes __attribute__((vector_size(vector_bytes / 4)));
  using integer_element = std::int32_t;
};
template <>
struct vector_of<double> {
  typedef double type __attribute__((vector_size(vector_bytes)));
  typedef double unaligned __attribute__((vector_size(vector_bytes), aligned(8), may_alias));
  typedef std::int64_t integer __attribute__((vector_size(vector_bytes)));
  typedef std::int8_t bytes __attribute__((vector_size(vector_bytes / 8)));
  using integer_element = std::int64_t;
};
}  // namespace detail

/// A vector of lanes<T> elements. Arithmetic, comparisons and `mask ? a : b` are those of the language.
template <class T>
using vec = typename detail::vector_of<T>::type;
/// As many integers of the same width: the result of comparing two vec<T>, and indices.
template <class T>
using integers = typename detail::vector_of<T>::integer;

/// Lambdas write broadcast(T(0)), as nvcc cannot compile a vector that is a constant there, such as vec<T>{}.
template <class T>
STRATA_INLINE inline vec<T> broadcast(T s) {
  return s - vec<T>{};  // s + 0 would turn -0 into 0, so it is not folded away without -ffast-math
}
template <class T>
STRATA_INLINE inline integers<T> broadcast_integer(int s) {
  return static_cast<typename detail::vector_of<T>::integer_element>(s) - integers<T>{};
}

#if defined(__AVX__) && !defined(STRATA_AVX512)
namespace detail {
/// n lanes of ones, then zeros, as vmaskmov needs them: a window that slides over one table.
template <class T>
STRATA_INLINE inline __m256i first_mask(int n) {
  static constexpr std::int32_t table[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(table + 8 - n * int(sizeof(T) / 4)));
}
}  // namespace detail
#endif

/// Loads lanes 0 ... n-1 from p and sets the others to zero. Touches no other memory.
template <class T>
STRATA_INLINE inline vec<T> load_first(const T* p, int n) {
#if defined(STRATA_AVX512)
  if constexpr (sizeof(T) == 4)
    return (vec<T>)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
  else
    return (vec<T>)_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1), p);
#elif defined(__AVX__)
  if constexpr (sizeof(T) == 4)
    return (vec<T>)_mm256_maskload_ps(p, detail::first_mask<T>(n));
  else
    return (vec<T>)_mm256_maskload_pd(p, detail::first_mask<T>(n));
#else
  if (n < 0 || n > lanes<T>) __builtin_unreachable();  // or g++ warns at -O3
  vec<T> v{};
  std::memcpy(&v, p, sizeof(T) * static_cast<std::size_t>(n));
  return v;
#endif
}
template <class T>
STRATA_INLINE inline void store_first(T* p, std::type_identity_t<vec<T>> v, int n) {
#if defined(STRATA_AVX512)
  if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), (__m512)v);
  else
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << n) - 1), (__m512d)v);
#elif defined(__AVX__)
  if constexpr (sizeof(T) == 4)
    _mm256_maskstore_ps(p, detail::first_mask<T>(n), (__m256)v);
  else
    _mm256_maskstore_pd(p, detail::first_mask<T>(n), (__m256d)v);
#else
  if (n < 0 || n > lanes<T>) __builtin_unreachable();  // or g++ warns at -O3
  std::memcpy(p, &v, sizeof(T) * static_cast<std::size_t>(n));
#endif
}

/// The same for an N that is known at compile time: by default, a whole vector.
template <int N, class T>
STRATA_INLINE inline vec<T> load(const T* p) {
  static_assert(N > 0 && N <= lanes<T>);
  if constexpr (N == lanes<T>)
    return *reinterpret_cast<const typename detail::vector_of<T>::unaligned*>(p);
  else
    return load_first(p, N);
}
template <class T>
STRATA_INLINE inline vec<T> load(const T* p) {
  return load<lanes<T>>(p);
}
template <int N, class T>
STRATA_INLINE inline void store(T* p, std::type_identity_t<vec<T>> v) {
  static_assert(N > 0 && N <= lanes<T>);
  if constexpr (N == lanes<T>)
    *reinterpret_cast<typename detail::vector_of<T>::unaligned*>(p) = v;
  else
    store_first(p, v, N);
}
template <class T>
STRATA_INLINE inline void store(T* p, std::type_identity_t<vec<T>> v) {
  store<lanes<T>>(p, v);
}

/// The same for vectors of a row, of which the last one has N elements.
template <int N, class T>
STRATA_INLINE inline vec<T> load_end(bool last, const T* p) {
  if constexpr (N == lanes<T>) return load(p);
  return last ? load<N>(p) : load(p);
}
template <int N, class T>
STRATA_INLINE inline void store_end(bool last, T* p, std::type_identity_t<vec<T>> v) {
  if (N == lanes<T> || !last)
    store(p, v);
  else
    store<N>(p, v);
}

/// Loads n small indices that are stored as bytes, widened to integers<T>.
template <class T>
STRATA_INLINE inline integers<T> load_first_bytes(const std::int8_t* p, int n) {
  // g++ 12 compiles the conversion of int8 lane by lane.
#if defined(STRATA_AVX512)
  const __m128i bytes = _mm_maskz_loadu_epi8(static_cast<__mmask16>((1u << n) - 1), p);
  if constexpr (sizeof(T) == 4)
    return (integers<T>)_mm512_maskz_cvtepi8_epi32(__mmask16(0xffff), bytes);
  else
    return (integers<T>)_mm512_maskz_cvtepi8_epi64(__mmask8(0xff), bytes);
#else
  typename detail::vector_of<T>::bytes b{};
  std::memcpy(&b, p, static_cast<std::size_t>(n));
#if defined(__AVX2__)
  std::int64_t word = 0;
  std::memcpy(&word, &b, sizeof b);
  if constexpr (sizeof(T) == 4)
    return (integers<T>)_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(word));
  else
    return (integers<T>)_mm256_cvtepi8_epi64(_mm_cvtsi64_si128(word));
#else
  integers<T> wide{};
  for (int i = 0; i < lanes<T>; ++i) wide[i] = b[i];
  return wide;
#endif
#endif
}
/// The same for an N that is known at compile time; and back to bytes.
template <class T, int N = lanes<T>>
STRATA_INLINE inline integers<T> load_bytes(const std::int8_t* p) {
  return load_first_bytes<T>(p, N);
}
template <class T, int N = lanes<T>>
STRATA_INLINE inline void store_bytes(std::int8_t* p, integers<T> v) {
#if defined(__AVX2__) && !defined(STRATA_AVX512)
  const __m128i low = _mm256_castsi256_si128((__m256i)v), high = _mm256_extracti128_si256((__m256i)v, 1);
  const __m128i words = sizeof(T) == 4 ? _mm_packs_epi32(low, high)  // g++ 12 compiles this conversion lane by lane, too
                                       : _mm_packs_epi32((__m128i)_mm_shuffle_ps((__m128)low, (__m128)high, 0x88), low);
  const std::int64_t b = _mm_cvtsi128_si64(_mm_packs_epi16(words, words));
#else
  const auto b = __builtin_convertvector(v, typename detail::vector_of<T>::bytes);
#endif
  std::memcpy(p, &b, N);
}

/// Keeps a value in a register. Otherwise g++ loads a value that is used n times from memory n times.
template <class V>
STRATA_INLINE inline void keep(V& x) {
  V value = x;  // an element of an array would stay in memory
#if defined(__AVX512F__)
  asm("" : "+v"(value));
#elif defined(__x86_64__)
  asm("" : "+x"(value));
#elif defined(__aarch64__)
  asm("" : "+w"(value));
#endif
  x = value;
}

namespace detail {
template <class F, int... I>
STRATA_INLINE inline void for_indices(F& f, std::integer_sequence<int, I...>) {
  (f(std::integral_constant<int, I>{}), ...);
}
}  // namespace detail

/// Calls f(integral_constant i) for i < N, where i has to be a constant; otherwise STRATA_UNROLL compiles in less time.
template <int N, class F>
STRATA_INLINE inline void unroll(F&& f) {
  detail::for_indices(f, std::make_integer_sequence<int, N>{});
}

/// a * b + c, rounded once wherever the target has fused operations. Sums of products and polynomials are made of it, because
/// compilers differ in which `a * b + c` they fuse: g++ fuses sums of a loop with one -mtune and not with another, none below
/// -O2.
STRATA_INLINE inline vec<float> multiply_add(vec<float> a, vec<float> b, vec<float> c) {
#if defined(STRATA_AVX512)
  return (vec<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX__) && defined(__FMA__)
  return (vec<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
  return (vec<float>)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + c;
#endif
}
STRATA_INLINE inline vec<double> multiply_add(vec<double> a, vec<double> b, vec<double> c) {
#if defined(STRATA_AVX512)
  return (vec<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX__) && defined(__FMA__)
  return (vec<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__aarch64__)
  return (vec<double>)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
  return a * b + c;
#endif
}

template <class T>
STRATA_INLINE inline vec<T> max(vec<T> a, vec<T> b) {
  return a > b ? a : b;
}

template <class T>
STRATA_INLINE inline vec<T> sqrt(vec<T> x) {
#if defined(STRATA_AVX512)
  if constexpr (sizeof(T) == 4)
    return (vec<T>)_mm512_maskz_sqrt_ps(__mmask16(0xffff), (__m512)x);
  else
    return (vec<T>)_mm512_maskz_sqrt_pd(__mmask8(0xff), (__m512d)x);
#elif defined(__AVX__)
  if constexpr (sizeof(T) == 4)
    return (vec<T>)_mm256_sqrt_ps((__m256)x);
  else
    return (vec<T>)_mm256_sqrt_pd((__m256d)x);
#else
  for (int i = 0; i < lanes<T>; ++i) x[i] = std::sqrt(x[i]);
  return x;
#endif
}

/// e^x with an error below 2 ulp: x = n ln 2 + r, a Taylor polynomial of r, and the exponent n applied in two halves, so that
/// large results overflow to infinity and small ones underflow gradually.
template <class T>
STRATA_INLINE inline vec<T> exp(vec<T> x) {
  using I = integers<T>;
  constexpr bool single = sizeof(T) == 4;
  constexpr int degree = single ? 7 : 13, mantissa_bits = single ? 23 : 52, bias = single ? 127 : 1023;
  constexpr T lowest = T(single ? -104 : -746), highest = T(single ? 89 : 710);
  constexpr T log2_e = T(1.44269504088896340736), ln2_high = single ? T(0.693145751953125) : T(6.93147180369123816490e-01),
              ln2_low = single ? T(1.42860682030941723212e-6) : T(1.90821492927058770002e-10);
  constexpr auto coefficient = [](int k) {
    double c = 1;
    for (int i = 2; i <= k; ++i) c /= i;
    return static_cast<T>(c);
  };
  x = x < lowest ? broadcast(lowest) : x;
  x = x > highest ? broadcast(highest) : x;
  const vec<T> nearest = multiply_add(x, broadcast(log2_e), x < T(0) ? broadcast(T(-0.5)) : broadcast(T(0.5)));
  const I n = __builtin_convertvector(nearest, I);
  const vec<T> whole = __builtin_convertvector(n, vec<T>);
  vec<T> r = multiply_add(whole, broadcast(-ln2_high), x);
  r = multiply_add(whole, broadcast(-ln2_low), r);
  vec<T> p = broadcast(coefficient(degree));
  unroll<degree>([&](auto i) STRATA_INLINE {
    constexpr T c = coefficient(degree - 1 - i);
    p = multiply_add(p, r, broadcast(c));
  });
  const I half = n >> 1, rest = n - half;
  return p * (vec<T>)((half + bias) << mantissa_bits) * (vec<T>)((rest + bias) << mantissa_bits);
}

template <class T>
STRATA_INLINE inline vec<T> sigmoid(vec<T> x) {
  return T(1) / (T(1) + simd::exp<T>(-x));
}

/// tanh x = (1 - e) / (1 + e) with e = exp(-2 |x|); near zero, where this cancels, an odd polynomial.
template <class T>
STRATA_INLINE inline vec<T> tanh(vec<T> x) {
  const vec<T> size = x < T(0) ? -x : x, e = simd::exp<T>(T(-2) * size), far = (T(1) - e) / (T(1) + e);
  const vec<T> s = size * size;
  vec<T> near;
  if constexpr (sizeof(T) == 4) {
    vec<T> p = broadcast(T(-929569. / 638512875));
    for (const double c : {21844. / 6081075, -1382. / 155925, 62. / 2835, -17. / 315, 2. / 15, -1. / 3})
      p = multiply_add(p, s, broadcast(T(c)));
    near = multiply_add(size * s, p, size);
  } else {
    near = size;
    for (int i = 0; i < lanes<T>; ++i) near[i] = std::tanh(size[i]);
  }
  const vec<T> positive = size < T(0.5) ? near : far;
  return x < T(0) ? -positive : positive;
}

/// The elements of a and b with the indices I; those of b follow those of a.
template <class To, class V, int... I>
STRATA_INLINE inline To shuffled(V a, V b, std::integer_sequence<int, I...>) {
#if defined(__CUDACC__)  // nvcc loses the expansion of a pack in __builtin_shufflevector
  constexpr int size = sizeof(V) / sizeof(a[0]);
  return To{(I < size ? a : b)[I % size]...};
#else
  return __builtin_shufflevector(a, b, I...);
#endif
}

namespace detail {
template <int S, bool High, class V, int... I>
STRATA_INLINE inline V interleave(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int L = sizeof...(I);
  return shuffled<V>(a, b, std::integer_sequence<int, ((I & S) != 0 ? L + (High ? I : I - S) : (High ? I + S : I))...>{});
}
template <class T, int S>
STRATA_INLINE inline void transpose_rounds(vec<T>* r) {
  using all = std::make_integer_sequence<int, lanes<T>>;
  STRATA_UNROLL
  for (int k = 0; k < lanes<T> / 2; ++k) {
    const int i = k / S * 2 * S + k % S;  // those without bit S
    const vec<T> a = r[i], b = r[i + S];
    r[i] = interleave<S, false>(a, b, all{}), r[i + S] = interleave<S, true>(a, b, all{});
  }
  if constexpr (S > 1) transpose_rounds<T, S / 2>(r);
}
}  // namespace detail

/// Transposes lanes<T> vectors in registers: log2(lanes) rounds of two-input shuffles.
template <class T>
STRATA_INLINE inline void transpose(vec<T> (&r)[lanes<T>]) {
  detail::transpose_rounds<T, lanes<T> / 2>(r);
}

/// Transposes: to[c * to_stride + r] = from[r * from_stride + c] for r < rows, c < columns. With `pad`, the rows of `to` are
/// filled up with zeros to whole vectors.
template <class T>
[[gnu::noinline]] STRATA_ONE_COPY void transpose(const T* from, std::ptrdiff_t from_stride, T* to, std::ptrdiff_t to_stride,
                                                 int rows, int columns, bool pad = false) {
  constexpr int L = lanes<T>;
  vec<T> none{};
  keep(none);  // else g++ computes what becomes of zeros, in a copy of the shuffles for each row
  for (int i = 0; i < rows; i += L)
    for (int j = 0; j < columns; j += L) {
      const T* f = from + i * from_stride + j;
      T* t = to + j * to_stride + i;
      const int height = rows - i < L ? rows - i : L, width = columns - j < L ? columns - j : L;
      vec<T> r[L];
      if (height == L && width == L) {
        STRATA_UNROLL
        for (int k = 0; k < L; ++k) r[k] = load(f + k * from_stride);
      } else {
        STRATA_UNROLL
        for (int k = 0; k < L; ++k) {
          r[k] = k < height ? load_first(f + k * from_stride, width) : none;
        }
      }
      transpose<T>(r);
      if (width == L && (height == L || pad)) {
        STRATA_UNROLL
        for (int k = 0; k < L; ++k) store(t + k * to_stride, r[k]);
      } else {
        STRATA_UNROLL
        for (int k = 0; k < L; ++k)
          if (k < width) store_first(t + k * to_stride, r[k], pad ? L : height);
      }
    }
}

/// n elements rounded up to whole vectors of the widest target, so that consecutive buffers begin at multiples of 64 bytes.
template <class T>
constexpr int aligned_size(int n) {
  constexpr int step = 64 / int(sizeof(T));
  return (n + step - 1) / step * step;
}
/// n rounded up to whole vectors of this target.
template <class T>
constexpr int padded(int n) {
  return (n + lanes<T> - 1) / lanes<T> * lanes<T>;
}

}  // namespace strata::simd
