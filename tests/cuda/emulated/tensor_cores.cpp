// What the threads of a warp give the instructions of tensor cores, and what they get, by the tables of the PTX ISA. It runs on
// the host only; kernels.cpp tests that kernels compute the same on a device.
// needs: emulated_cuda
// flags: -O0
#include <doctest/doctest.h>

#include <cstdint>
#include <strata/base/random.hpp>
#include <strata/cuda/machine/image_gradient.hpp>
#include <strata/cuda/machine/image_product.hpp>
#include <strata/cuda/machine/tensor_product.hpp>
#include <utility>
#include <vector>

using namespace strata;
using namespace strata::core;

namespace {

/// The operands of one instruction in one thread, and the addresses of its sums.
struct operands_of_thread {
  std::uint32_t a[4], b[2];
  float* sum[4];
};

/// The instructions of a warp in their order, with the operands of all threads.
using recorded_instructions = std::vector<std::vector<operands_of_thread>>;
/// Records the operands that a thread passes to each instruction. The first thread determines their number.
struct recorder_of_thread {
  recorded_instructions& instructions;
  std::size_t lane;
  mutable std::size_t number = 0;  // of its instructions so far

  void operator()(float* const (&sum)[4], const std::uint32_t (&left)[4], const std::uint32_t (&right)[2]) const {
    if (lane == 0) instructions.emplace_back(32);
    REQUIRE(number < instructions.size());
    operands_of_thread& mine = instructions[number++][lane];
    for (int i = 0; i < 4; ++i) mine.a[i] = left[i], mine.sum[i] = sum[i];
    for (int i = 0; i < 2; ++i) mine.b[i] = right[i];
  }
};

/// Row and column of each register of thread `lane`, by the PTX ISA: mma.m16n8k8 with .tf32, and mma.m16n8k16 with .bf16, whose
/// registers hold two consecutive terms.
struct matrix_place {
  int row, column;
};
matrix_place of_a(int lane, int i) { return {lane / 4 + (i % 2 == 1 ? 8 : 0), lane % 4 + (i >= 2 ? 4 : 0)}; }
matrix_place of_b(int lane, int i) { return {lane % 4 + (i == 1 ? 4 : 0), lane / 4}; }
matrix_place of_sum(int lane, int i) { return {lane / 4 + (i >= 2 ? 8 : 0), lane % 4 * 2 + i % 2}; }

/// What a warp computes: the sums of all threads += a times b.
template <class P>
void compute(const std::vector<operands_of_thread>& warp) {
  std::uint32_t a[16][8], b[8][8];
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) a[of_a(lane, i).row][of_a(lane, i).column] = warp[std::size_t(lane)].a[i];
    for (int i = 0; i < 2; ++i) b[of_b(lane, i).row][of_b(lane, i).column] = warp[std::size_t(lane)].b[i];
  }
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      const matrix_place at = of_sum(lane, i);
      for (int word = 0; word < 8; ++word)
        for (int which = 0; which < machine::tensor_word<P>::terms; ++which)
          *warp[std::size_t(lane)].sum[i] +=
              machine::tensor_word<P>::term(a[at.row][word], which) * machine::tensor_word<P>::term(b[word][at.column], which);
    }
}

/// Small whole numbers, whose sums are exact.
float whole(std::uint64_t stream, int i, int j) { return float(int(philox{stream}.uniform(std::size_t(i * 1000 + j)) * 16) - 8); }

template <class P, int Rows, int Columns>
void check_instructions(int row, int column) {
  using word = machine::tensor_word<P>;
  machine::tensor_factor<P, Rows, true> a;
  machine::tensor_factor<P, Columns, false> b;
  const auto fill = [](auto& factor, int extent, std::uint64_t stream) {
    for (int r = 0; r < extent; ++r)
      for (int k = 0; k < machine::tensor_depth; k += word::terms) {
        float terms[word::terms];
        for (int i = 0; i < word::terms; ++i) terms[i] = whole(stream, r, k + i);
        const int number = k / word::terms;
        factor.unit(number / 2, r / 2).at[factor.within(r % 2, number % 2)] = word::of(terms);
      }
  };
  fill(a, Rows, 1);
  fill(b, Columns, 2);

  float sums[32][4][8] = {};
  recorded_instructions instructions;
  for (int lane = 0; lane < 32; ++lane) {
    recorder_of_thread recorder{instructions, std::size_t(lane)};
    machine::detail::for_each_instruction(a, b, lane, row, column, 0, machine::tensor_steps<P>, sums[lane], recorder);
    CHECK(recorder.number == instructions.size());
  }
  CHECK(instructions.size() == std::size_t(8 * machine::tensor_steps<P>));
  for (const auto& warp : instructions) compute<P>(warp);

  for (int lane = 0; lane < 32; ++lane) {
    float plain[4][8] = {};
    constexpr int half = machine::tensor_steps<P> / 2;
    for (const int first : {0, half}) machine::multiply_in_warp<half>(a, b, lane, row, column, first, plain);
    const machine::tensor_lane own(lane);
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 8; ++j) {
        float expected = 0;
        for (int k = 0; k < machine::tensor_depth; ++k)
          expected += whole(1, row + own.row + i, k) * whole(2, column + own.column + j, k);
        CHECK(sums[lane][i][j] == expected);
        CHECK(plain[i][j] == expected);
      }
  }
}

/// Checks instructions on pixels whose terms are whole(1, pixel, term), and weights that are whole(2, column, term). If Halves is
/// 1, each thread multiplies the first four of its eight terms.
template <int Halves>
void check_instructions_of_images(bool are_windows) {
  using word = machine::tensor_word<precision::mixed_bf16>;
  const auto pair_of = [](std::uint64_t stream, int i, int pair) {
    return word::of({whole(stream, i, 2 * pair), whole(stream, i, 2 * pair + 1)});
  };
  machine::kept_weights weights;
  for (int n = 0; n < 32; ++n)
    for (int pair = 0; pair < 16; ++pair) weights.store(n, pair, pair_of(2, n, pair));
  const auto terms_of = [&](int pixel, int number) {
    machine::eight_terms all;
    for (int k = 0; k < 4; ++k) all.at[k] = pair_of(1, pixel, 4 * number + k);
    return all;
  };

  float sums[32][8][4] = {};
  recorded_instructions instructions;
  for (int lane = 0; lane < 32; ++lane) {
    const machine::image_lane own(lane);
    machine::eight_terms of_pixels[4];
    for (int j = 0; j < 4; ++j) of_pixels[j] = terms_of(own.loaded_pixel(j, are_windows), lane % 4);
    recorder_of_thread recorder{instructions, std::size_t(lane)};
    machine::detail::for_each_instruction<Halves>(weights, of_pixels, lane, sums[lane], recorder);
    CHECK(recorder.number == instructions.size());
  }
  CHECK(instructions.size() == 8 * Halves);
  for (const auto& warp : instructions) compute<precision::mixed_bf16>(warp);

  int times[32][32] = {};
  for (int lane = 0; lane < 32; ++lane) {
    const machine::image_lane own(lane);
    float plain[8][4] = {};
    machine::detail::multiply_thirty_two<Halves>(
        weights, [&](int p, int number) { return terms_of(own.pixel(p, are_windows), number); }, lane, plain);
    for (int p = 0; p < 8; ++p)
      for (int j = 0; j < 4; ++j) {
        const int pixel = own.pixel(p, are_windows), column = own.column() + j;
        float expected = 0;
        for (int k = 0; k < 32; ++k)
          if (k % 8 < 4 * Halves) expected += whole(1, pixel, k) * whole(2, column, k);
        CHECK(sums[lane][p][j] == expected);
        CHECK(plain[p][j] == expected);
        ++times[pixel][column];
      }
  }
  for (const auto& of_pixel : times)
    for (const int each : of_pixel) CHECK(each == 1);
}

template <int Step>
struct product_of_steps {
  static constexpr int taps = 1;
  struct view {
    static constexpr int rows = 1, columns = 64 * Step, channels = 64, step = Step;
    static constexpr int offset(int) { return 0; }
  };
};
/// Whether eight threads that load together use different banks if neighbouring pixels of a row of windows are Step apart.
template <int Step>
bool images_differ_in_banks(bool are_windows) {
  const machine::detail::image_of_planes<product_of_steps<Step>> image{};
  for (int quarter = 0; quarter < 4; ++quarter)
    for (int j = 0; j < 4; ++j) {
      bool used[8] = {};
      for (int t = 0; t < 8; ++t) {
        const int lane = quarter * 8 + t, pixel = machine::image_lane(lane).loaded_pixel(j, are_windows) * Step;
        bool& bank = used[(&image.terms(1, pixel, lane % 4) - &image.terms(0, 0, 0)) % 8];
        if (std::exchange(bank, true)) return false;
      }
    }
  return true;
}

/// The registers of thread `lane` after ldmatrix.x4.trans of four matrices of 8 x 8 elements of 16 bits, by the PTX ISA.
/// element(thread, i): element i of the row whose address that thread passes.
template <class Element>
machine::four<std::uint32_t> load_transposed(int lane, const Element& element) {
  machine::four<std::uint32_t> all;
  for (int matrix = 0; matrix < 4; ++matrix)
    all.at[matrix] =
        machine::rounded_pair(element(8 * matrix + lane % 4 * 2, lane / 4), element(8 * matrix + lane % 4 * 2 + 1, lane / 4));
  return all;
}

/// The channels of an image are whole(1, pixel, channel), the filters of a result whole(2, pixel, filter).
void check_instructions_of_gradients() {
  constexpr int channels = 32, filters = 64;
  float sums[32][channels / 16][filters / 8][4] = {};
  recorded_instructions instructions;
  for (int lane = 0; lane < 32; ++lane) {
    recorder_of_thread recorder{instructions, std::size_t(lane)};
    machine::detail::for_each_instruction_of_pixels<channels / 16, filters>(
        [&](int i) {
          return load_transposed(lane, [&](int thread, int k) {
            const machine::gradient_lane names{thread};
            return whole(1, names.pixel_of_image(), 16 * i + names.channel_of_image() + k);
          });
        },
        [&](int j) {
          return load_transposed(lane, [&](int thread, int k) {
            const machine::gradient_lane names{thread};
            return whole(2, names.pixel_of_result(), 16 * j + names.filter_of_result() + k);
          });
        },
        sums[lane], recorder);
    CHECK(recorder.number == instructions.size());
  }
  CHECK(instructions.size() == channels / 16 * filters / 8);
  for (const auto& warp : instructions) compute<precision::mixed_bf16>(warp);

  int times[channels][filters] = {};
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < channels / 16; ++i)
      for (int j = 0; j < filters / 8; ++j)
        for (int k = 0; k < 4; ++k) {
          const machine::gradient_lane own{lane};
          const int channel = 16 * i + own.channel(k), filter = 8 * j + own.filter(k);
          float expected = 0;
          for (int pixel = 0; pixel < 16; ++pixel) expected += whole(1, pixel, channel) * whole(2, pixel, filter);
          CHECK(sums[lane][i][j][k] == expected);
          ++times[channel][filter];
        }
  for (const auto& of_channel : times)
    for (const int each : of_channel) CHECK(each == 1);
}

/// Whether the threads that pass the rows of a matrix, which are neighbouring pixels, use different banks.
template <int Channels>
bool rows_differ_in_banks() {
  const machine::pixels_by_rows<16, Channels> all{};
  for (int matrix = 0; matrix < 4; ++matrix)
    for (const bool of_result : {false, true}) {
      bool used[8] = {};
      for (int t = 0; t < 8; ++t) {
        const machine::gradient_lane names{8 * matrix + t};
        const machine::eight_terms& row = of_result ? all.eight(names.pixel_of_result(), names.filter_of_result() / 8)
                                                    : all.eight(names.pixel_of_image(), names.channel_of_image() / 8);
        bool& bank = used[(&row - &all.eight(0, 0)) % 8];
        if (std::exchange(bank, true)) return false;
      }
    }
  return true;
}

/// Whether all threads together have each element of a result exactly once.
bool lanes_have_each_element_once() {
  int times[32][32] = {};
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 8; ++j) ++times[machine::tensor_lane(lane).row + i][machine::tensor_lane(lane).column + j];
  for (const auto& row : times)
    for (const int each : row)
      if (each != 1) return false;
  return true;
}

/// Whether eight threads, which store or load their units at the same time, use different banks of shared memory.
template <class Factor>
bool differ_in_banks(const Factor& factor, const auto& unit_of_thread) {
  bool used[8] = {};
  for (int t = 0; t < 8; ++t) {
    bool& bank = used[(&unit_of_thread(t) - &factor.unit(0, 0) + 8) % 8];
    if (std::exchange(bank, true)) return false;
  }
  return true;
}

template <class P, bool IsA, int Extent>
void check_banks() {
  using factor_type = machine::tensor_factor<P, Extent, IsA>;
  const factor_type factor{};
  for (int quarter = 0; quarter < 4; ++quarter)
    for (int step = 0; step < machine::tensor_steps<P>; ++step)
      for (int second = 0; second < 2; ++second)
        CHECK(differ_in_banks(factor, [&](int t) -> const auto& {  // as for_each_instruction loads
          const int lane = quarter * 8 + t;
          return factor.unit(machine::detail::unit_of_step<P>(step, lane % 4), 2 * (lane / 4) + second);
        }));
  const auto check_stores = [&]<bool TermsAreNeighbours>() {
    using fours = machine::detail::fours_of_tile<P, Extent, 128, IsA, TermsAreNeighbours>;
    for (int first = 0; first < 128; first += 8)
      for (int i = 0; i < factor_type::units_of_thread; ++i)
        for (int half = 0; half < (TermsAreNeighbours ? 1 : 2); ++half)
          if (fours::fetches(first))
            CHECK(differ_in_banks(factor, [&](int t) -> const auto& {
              return factor.unit(fours::term(first + t, 0) / factor_type::terms_of_unit + i, fours::row(first + t, 0) / 2 + half);
            }));
  };
  check_stores.template operator()<true>();
  check_stores.template operator()<false>();
}

/// Whether the fours of all threads contain each element of a tile exactly once.
template <class P, int Extent, bool TermsAreNeighbours>
bool fetches_each_number_once() {
  using fours = machine::detail::fours_of_tile<P, Extent, 128, true, TermsAreNeighbours>;
  int times[Extent][machine::tensor_depth] = {};
  for (int t = 0; t < 128; ++t)
    for (int j = 0; j < fours::count && fours::fetches(t); ++j)
      for (int i = 0; i < 4; ++i)
        ++times[fours::row(t, j) + (TermsAreNeighbours ? 0 : i)][fours::term(t, j) + (TermsAreNeighbours ? i : 0)];
  for (const auto& row : times)
    for (const int each : row)
      if (each != 1) return false;
  return true;
}

}  // namespace

TEST_CASE("instructions of tensor cores multiply the rows by the columns that a warp has") {
  check_instructions<precision::tf32, 64, 64>(0, 0);
  check_instructions<precision::tf32, 128, 32>(96, 0);
  check_instructions<precision::mixed_bf16, 64, 64>(32, 32);
  check_instructions<precision::mixed_bf16, 128, 32>(64, 0);
}

TEST_CASE("instructions of tensor cores multiply pixels by weights") {
  for (const bool are_windows : {false, true}) {
    CAPTURE(are_windows);
    check_instructions_of_images<1>(are_windows);
    check_instructions_of_images<2>(are_windows);
    CHECK(images_differ_in_banks<1>(are_windows));
    CHECK(images_differ_in_banks<2>(are_windows));
    CHECK(images_differ_in_banks<3>(are_windows));
    CHECK(images_differ_in_banks<4>(are_windows));
  }
}

TEST_CASE("instructions of tensor cores multiply the channels of pixels by their filters") {
  check_instructions_of_gradients();
  CHECK(rows_differ_in_banks<32>());
  CHECK(rows_differ_in_banks<64>());
  CHECK(rows_differ_in_banks<96>());
}

TEST_CASE("the threads of a warp have each element of a result once") { CHECK(lanes_have_each_element_once()); }

TEST_CASE_TEMPLATE("threads that store or load at once use different banks of shared memory", P, precision::tf32,
                   precision::mixed_bf16) {
  check_banks<P, true, 32>();
  check_banks<P, true, 64>();
  check_banks<P, true, 128>();
  check_banks<P, false, 64>();
}

TEST_CASE_TEMPLATE("the threads of a block fetch each number of a tile once", P, precision::tf32, precision::mixed_bf16) {
  CHECK(fetches_each_number_once<P, 32, true>());
  CHECK(fetches_each_number_once<P, 64, true>());
  CHECK(fetches_each_number_once<P, 128, true>());
  CHECK(fetches_each_number_once<P, 32, false>());
  CHECK(fetches_each_number_once<P, 64, false>());
  CHECK(fetches_each_number_once<P, 128, false>());
}
