// cuBLASLt for emulated devices: plain loops, as work on a queue. Beyond what check() sees, each matrix must lie in memory that
// has been allocated.
#pragma once
#include <strata/cuda/machine/blas_product.hpp>
#include <strata/cuda/machine/machine.hpp>
#include <strata/cuda/machine/rounded_operand.hpp>
#include <vector>

namespace strata::machine {

inline constexpr bool has_blas = true;
/// Of a product, in bytes.
inline constexpr std::size_t blas_workspace = 256;

/// For tests: what the emulated library can do.
struct emulated_blas {
  bool has_epilogues = true, has_algorithms = true;
};
inline emulated_blas& emulate_blas() {
  static emulated_blas one;
  return one;
}

/// The algorithms of the emulated library. The first one is the fastest, but its bits depend on the number of products.
enum class emulated_algorithm : std::uint64_t { depends_on_the_count = 1, in_blocks, in_order };

inline std::string blas_identity(int) { return "emulated device, emulated cuBLASLt"; }

class blas_call {
  blas_product what_;

  float element(const void* from, long i) const {
    if (what_.factors == factor_type::bf16) return float(static_cast<const bfloat16*>(from)[i]);
    const float x = static_cast<const float*>(from)[i];
    return what_.factors == factor_type::tf32 ? nearest_tf32(x) : x;
  }
  /// Stored: an element of d, and of a bias that is added.
  template <class Stored>
  void compute(emulated_algorithm how, const blas_addresses& at, bool adds) const {
    const blas_product& p = what_;
    const long block = how == emulated_algorithm::in_blocks ? 32 : how == emulated_algorithm::in_order ? p.k : 8 + p.count;
    const auto a = [&](long z, long i, long l) {
      return element(at.a, z * p.a.stride + (p.a.transposed ? i * p.a.leading + l : l * p.a.leading + i));
    };
    const auto b = [&](long z, long l, long j) {
      return element(at.b, z * p.b.stride + (p.b.transposed ? l * p.b.leading + j : j * p.b.leading + l));
    };
    const auto in_blocks = [&](auto&& term) {
      float sum = 0;
      for (long first = 0; first < p.k; first += block) {
        float part = 0;
        for (long l = first; l < std::min(first + block, p.k); ++l) part += term(l);
        sum += part;
      }
      return sum;
    };
    for (long z = 0; z < p.count; ++z) {
      const auto bias = [&](long i) -> Stored& { return static_cast<Stored*>(at.bias)[z * p.bias_stride + i]; };
      for (long j = 0; j < p.n; ++j)
        for (long i = 0; i < p.m; ++i) {
          float sum = in_blocks([&](long l) { return a(z, i, l) * b(z, l, j); });
          Stored& d = static_cast<Stored*>(at.d)[z * p.d.stride + j * p.d.leading + i];
          if (adds) sum += d;
          if (p.epilogue == blas_epilogue::bias || p.epilogue == blas_epilogue::relu_bias) sum += bias(i);
          if ((p.epilogue == blas_epilogue::relu || p.epilogue == blas_epilogue::relu_bias) && sum < 0) sum = 0;
          d = stored_as<Stored>(sum);
        }
      if (p.epilogue == blas_epilogue::bias_gradient)
        for (long i = 0; i < p.m; ++i) bias(i) = stored_as<Stored>(in_blocks([&](long l) { return a(z, i, l); }));
    }
  }

 public:
  blas_call(const queue&, const blas_product& what) : what_(what) {}

  /// Those that may be able to run it, the most promising first.
  std::vector<blas_algorithm> algorithms(const queue&) const {
    const emulated_blas& library = emulate_blas();
    if (!library.has_algorithms || (!library.has_epilogues && what_.epilogue != blas_epilogue::none)) return {};
    return {{{std::uint64_t(emulated_algorithm::in_order)}},
            {{std::uint64_t(emulated_algorithm::depends_on_the_count)}},
            {{std::uint64_t(emulated_algorithm::in_blocks)}}};
  }
  bool can_run(const queue& q, const blas_algorithm& how) const {
    const auto all = algorithms(q);
    return std::ranges::find(all, how) != all.end();
  }
  void run(const queue& q, const blas_algorithm& how, const blas_addresses& at, bool adds) const {
    const auto check_memory = [&](const void* from, long bytes, const char* name) {
      if (!detail::machine_state::the().holds(q.device(), from, std::size_t(bytes)))
        throw_error({"a product of matrices (", text_of(what_), "): ", name, " is not in memory of gpu(", q.device(), ")"});
    };
    check_memory(at.a, what_.size_of_a() * bytes_of(what_.factors), "a");
    check_memory(at.b, what_.size_of_b() * bytes_of(what_.factors), "b");
    check_memory(at.d, what_.size_of_d() * what_.bytes_of_d(), "d");
    check_memory(at.workspace, long(blas_workspace), "the workspace");
    if (has_bias(what_.epilogue)) check_memory(at.bias, what_.size_of_bias() * what_.bytes_of_d(), "the bias");
    detail::count(q, &work_counts::kernels, "a product of matrices");
    detail::count(q, &work_counts::library_calls, "a product of matrices");
    detail::enqueue(q, [call = *this, how, at, adds] {
      std::memset(at.workspace, 0xcd, blas_workspace);  // a kernel that keeps numbers there finds garbage
      const auto algorithm = emulated_algorithm(how.numbers[0]);
      call.what_.stores_bf16 ? call.compute<bfloat16>(algorithm, at, adds) : call.compute<float>(algorithm, at, adds);
    });
  }
  double milliseconds(const queue& q, const blas_algorithm& how, const blas_addresses& at) const {
    run(q, how, at, false);
    wait(q);
    return double(how.numbers[0]);
  }
};

}  // namespace strata::machine
