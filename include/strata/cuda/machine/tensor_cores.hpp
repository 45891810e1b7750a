// The operands of a warp on tensor cores: tiles of words in shared memory, and the elements of the result that a thread has.
#pragma once
#include <bit>
#include <cstdint>
#include <strata/cuda/machine/fours.hpp>
#include <strata/cuda/machine/rounded_four.hpp>
#include <strata/cuda/machine/rounded_operand.hpp>

namespace strata::machine {

/// What tensor cores multiply are words of 32 bits: a term in TensorFloat-32, or two terms that follow each other in bfloat16, of
/// which the first is the lower half. `terms`: of a word; 0 where a policy has none.
template <class P>
struct tensor_word {
  static constexpr int terms = 0;
};
template <>
struct tensor_word<precision::tf32> {
  static constexpr int terms = 1;
  STRATA_DEVICE static std::uint32_t of(const float (&term)[1]) {
    // As nearest_tf32 rounds, but with the bits that TF32 does not have, also of an infinity: tensor cores drop them.
    return term[0] != term[0] ? 0x7fff'ffff : std::bit_cast<std::uint32_t>(term[0]) + 0x1000;
  }
  static constexpr float term(std::uint32_t word, int) { return std::bit_cast<float>(word & ~std::uint32_t{0x1fff}); }
};
template <>
struct tensor_word<precision::mixed_bf16> {
  static constexpr int terms = 2;
  STRATA_DEVICE static std::uint32_t of(const float (&term)[2]) { return rounded_pair(term[0], term[1]); }
  static constexpr float term(std::uint32_t word, int which) { return number_of_pair(word, which); }
};

/// True if products of this policy run on tensor cores.
template <class P>
inline constexpr bool is_on_tensor_cores = tensor_word<P>::terms > 0;

/// The terms that a block multiplies between two barriers.
inline constexpr int tensor_depth = 32;
/// The number of steps of 8 words in a depth, each of which is one instruction.
template <class P>
inline constexpr int tensor_steps = tensor_depth / (8 * tensor_word<P>::terms);

/// `Extent` rows of a, or columns of b, each with tensor_depth terms, in shared memory. Two neighbouring rows (or columns) and
/// two words that follow each other are a unit, which a thread stores at once, and loads in the order of the registers of an
/// instruction.
template <class P, int Extent, bool IsA>
class tensor_factor {
  static_assert(Extent % 32 == 0);

 public:
  static constexpr int terms_of_word = tensor_word<P>::terms, terms_of_unit = 2 * terms_of_word;
  static constexpr int units_of_row = tensor_depth / terms_of_unit, units_of_thread = tensor_steps<P> / 2;

  /// Unit k of rows 2 * pair and the next one.
  STRATA_DEVICE four<std::uint32_t>& unit(int k, int pair) { return units_[k][place(k, pair)]; }
  STRATA_DEVICE const four<std::uint32_t>& unit(int k, int pair) const { return units_[k][place(k, pair)]; }
  /// Where a unit has word `word` of row `row`, which are 0 or 1.
  static constexpr int within(int row, int word) { return IsA ? row + 2 * word : 2 * row + word; }

 private:
  /// Pairs of rows are exchanged so that eight threads use different banks of the memory: those that store all units of two rows
  /// (units_of_thread each), and those that load for an instruction.
  static constexpr int place(int k, int pair) {
    const int thread = k / units_of_thread;
    return pair ^ (thread % 2 + thread / 2 % 2 * 4 + thread / 4 * 2);
  }

  four<std::uint32_t> units_[units_of_row][Extent / 2];
};

/// Thread `lane` of a warp has 4 rows and 8 columns of a result of 32 x 32: rows 4 * (lane / 4) and the next three, and columns
/// 8 * (lane % 4) and the next seven.
struct tensor_lane {
  int row, column;
  STRATA_DEVICE explicit tensor_lane(int lane) : row(lane / 4 * 4), column(lane % 4 * 8) {}
};

namespace detail {
/// The unit that thread `within` of four multiplies in a step.
template <class P>
constexpr int unit_of_step(int step, int within) {
  constexpr int of_thread = tensor_steps<P> / 2;
  return (within + step / of_thread * 4) * of_thread + step % of_thread;
}

/// Calls multiply(sum, a, b) for each 16 x 8 elements of a result of 32 x 32, and each of some steps. The registers are those
/// that the instruction mma.sync.m16n8k8 of TF32 and m16n8k16 of bfloat16 has in this thread (PTX ISA, "Matrix Fragments for
/// mma"): its rows, columns and words are permuted such that registers come from one unit, and that the sums of a thread lie side
/// by side.
template <class P, int Rows, int Columns, class Multiply>
STRATA_DEVICE void for_each_instruction(const tensor_factor<P, Rows, true>& a, const tensor_factor<P, Columns, false>& b,
                                        int lane, int row, int column, int first_step, int steps, float (&sums)[4][8],
                                        const Multiply& multiply) {
  const int group = lane / 4;
  for (int step = 0; step < steps; ++step) {
    const int k = unit_of_step<P>(first_step + step, lane % 4);
    const four<std::uint32_t> of_a[2] = {a.unit(k, row / 2 + 2 * group), a.unit(k, row / 2 + 2 * group + 1)};
    const four<std::uint32_t> of_b[2] = {b.unit(k, column / 2 + 2 * group), b.unit(k, column / 2 + 2 * group + 1)};
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 4; ++j) {
        const std::uint32_t words_of_b[2] = {of_b[j / 2].at[j % 2 * 2], of_b[j / 2].at[j % 2 * 2 + 1]};
        float* const sum[4] = {&sums[2 * i][j], &sums[2 * i][4 + j], &sums[2 * i + 1][j], &sums[2 * i + 1][4 + j]};
        multiply(sum, of_a[i].at, words_of_b);
      }
  }
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
/// One instruction. sum: the elements that the thread has; a, b: its registers of both factors.
template <class P>
STRATA_DEVICE void multiply_add(float* const (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  if constexpr (tensor_word<P>::terms == 1)
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(*sum[0]), "+f"(*sum[1]), "+f"(*sum[2]), "+f"(*sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(*sum[0]), "+f"(*sum[1]), "+f"(*sum[2]), "+f"(*sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif
}  // namespace detail

/// Adds the product of rows row to row + 31 of a and columns column to column + 31 of b, of `Steps` steps from first_step on, to
/// the elements that the thread has. All threads of a warp have to call it.
template <int Steps, class P, int Rows, int Columns>
STRATA_DEVICE void multiply_in_warp(const tensor_factor<P, Rows, true>& a, const tensor_factor<P, Columns, false>& b, int lane,
                                    int row, int column, int first_step, float (&sums)[4][8]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  detail::for_each_instruction(a, b, lane, row, column, first_step, Steps, sums,
                               [](const auto&... operands) { detail::multiply_add<P>(operands...); });
#else
  using left = tensor_factor<P, Rows, true>;
  using right = tensor_factor<P, Columns, false>;
  const tensor_lane own(lane);
  for (int step = first_step; step < first_step + Steps; ++step)
    for (int within = 0; within < 4; ++within)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 8; ++j)
          for (int word = 0; word < 2; ++word)
            for (int which = 0; which < tensor_word<P>::terms; ++which) {
              const int k = detail::unit_of_step<P>(step, within), m = row + own.row + i, n = column + own.column + j;
              sums[i][j] += tensor_word<P>::term(a.unit(k, m / 2).at[left::within(m % 2, word)], which) *
                            tensor_word<P>::term(b.unit(k, n / 2).at[right::within(n % 2, word)], which);
            }
#endif
}

}  // namespace strata::machine
