// Products of matrices by cuBLASLt, with the algorithm that was the fastest of those whose bits do not depend on the number of
// products: so a leaf has the same gradient on a device that computes all leaves and on one that computes a part of them.
#pragma once
#if defined(__CUDACC__)
#include <strata/cuda/machine/blas_hardware.cuh>
#else
#include <strata/cuda/machine/blas_emulated.hpp>
#endif
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <strata/cuda/machine/device.hpp>
#include <strata/cuda/machine/fill_with_numbers.hpp>
#include <strata/cuda/machine/library_choices.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <string>
#include <vector>

namespace strata::machine {

namespace detail {

/// An algorithm as text, or "none".
inline std::string text_of(const std::optional<blas_algorithm>& how) {
  if (!how) return "none";
  std::string text;
  for (std::size_t i = 0; i < 8; ++i)
    text += strata::detail::formatted(i == 0 ? "%016llx" : " %016llx", static_cast<unsigned long long>(how->numbers[i]));
  return text;
}
/// False if the text is no algorithm.
inline bool parse(const std::string& text, std::optional<blas_algorithm>& how) {
  how.reset();
  if (text == "none" || text == library_choices::none_for_now) return true;
  if (text.size() != 8 * 17 - 1) return false;
  blas_algorithm parsed;
  for (std::size_t i = 0; i < 8; ++i) {
    const char* const begin = text.data() + 17 * i;
    if (const auto [end, code] = std::from_chars(begin, begin + 16, parsed.numbers[i], 16);
        code != std::errc() || end != begin + 16)
      return false;
  }
  how = parsed;
  return true;
}

/// A factor whose first and last of `terms` terms of a sum cancel each other, as do the second and the last but one, and so on.
/// The rest of such a sum is its rounding errors, so any other order of the terms gives another result, also where a result has
/// few bits.
struct fill_with_terms {
  fill_with_numbers fill;
  blas_matrix matrix;
  long terms;
  bool columns_are_terms, negates;  // negates: the second half of the terms; one of the two factors does

  constexpr void operator()(long i) const {
    const long within = matrix.stride > 0 ? i % matrix.stride : i, column = within / matrix.leading,
               row = within % matrix.leading;
    const long term = columns_are_terms ? column : row, other = columns_are_terms ? row : column, opposite = terms - 1 - term;
    const float number = fill_with_numbers::number(i - within + other * terms + std::min(term, opposite));
    fill.store(i, !negates || term < opposite ? number : term > opposite ? -number : 0);
  }
};

}  // namespace detail

#if defined(STRATA_CUBLASLT) || !defined(__CUDACC__)

/// Products of one description, ready to be computed: run() neither allocates nor waits nor chooses.
class library_product {
  blas_product what_;
  blas_call call_;
  blas_algorithm how_;

  library_product(blas_product what, blas_call call, blas_algorithm how)
      : what_(what), call_(std::move(call)), how_(how) {}  // by value: clang 14 at -O1 loses what is copied from a reference

 public:
  /// Empty if the library has no algorithm for it. Throws strata_error for a wrong description. The first call for a
  /// description measures, in memory of its own. If there is too little, throws no_memory_to_choose or, with has_room, returns
  /// nothing.
  static std::optional<library_product> find(const queue& q, const blas_product& what, bool has_room = false) {
    check(what);
    blas_call call(q, what);
    std::optional<blas_algorithm> how;
    library_choices::the().find(
        strata::detail::text_of({blas_identity(q.device()), ": ", text_of(what)}),
        [&](const std::string& text) { return detail::parse(text, how) && (!how || call.can_run(q, *how)); },
        [&] {
          how.reset();
          how = fastest(q, what, call);
          return detail::text_of(how);
        },
        has_room ? std::function<void()>() : [=] { (void)find(q, what, true); });
    if (!how) return {};
    return library_product(what, std::move(call), *how);
  }
  const blas_algorithm& algorithm() const { return how_; }
  /// adds: adds to d instead of storing. Throws strata_error if the alignment of an address differs from the description.
  void run(const queue& q, const blas_addresses& at, bool adds = false) const {
    check(what_, at);
    call_.run(q, how_, at, adds);
  }

 private:
  /// Memory for trial products, with the factors filled.
  struct trial {
    cuda_device on;
    cuda_device::buffer<std::byte> a, b, workspace, d, bias;

    trial(const queue& q, const blas_product& p)
        : on(q.device()),
          a(on.allocate<std::byte>(std::size_t(p.size_of_a() * bytes_of(p.factors)))),
          b(on.allocate<std::byte>(std::size_t(p.size_of_b() * bytes_of(p.factors)))),
          workspace(on.allocate<std::byte>(blas_workspace)),
          d(on.allocate<std::byte>(std::size_t(p.size_of_d() * p.bytes_of_d()))),
          bias(on.allocate<std::byte>(std::size_t(p.size_of_bias() * p.bytes_of_d()))) {
      const bool halves = p.factors == factor_type::bf16;
      for_each_index(q, p.size_of_a(), detail::fill_with_terms{{a.data(), halves}, p.a, p.k, !p.a.transposed, false});
      for_each_index(q, p.size_of_b(), detail::fill_with_terms{{b.data(), halves}, p.b, p.k, p.b.transposed, true});
    }
    /// The addresses of product z.
    blas_addresses at(const blas_product& p, long z) const {
      const long bytes = bytes_of(p.factors), stored = p.bytes_of_d();
      return {a.data() + z * p.a.stride * bytes, b.data() + z * p.b.stride * bytes, d.data() + z * p.d.stride * stored,
              bias.data() ? bias.data() + z * p.bias_stride * stored : nullptr, workspace.data()};
    }
    /// The result of product z.
    std::vector<std::byte> result(const queue& q, const blas_product& p, long z) const {
      const auto stored = std::size_t(p.bytes_of_d()), size = std::size_t((p.n - 1) * p.d.leading + p.m) * stored,
                 biases = bias.data() ? std::size_t(p.m) * stored : 0;
      std::vector<std::byte> all(size + biases);
      const blas_addresses from = at(p, z);
      on.copy_to_host(q, static_cast<const std::byte*>(from.d), std::span(all).first(size));
      on.copy_to_host(q, static_cast<const std::byte*>(from.bias), std::span(all).last(biases));
      on.wait(q);
      return all;
    }
  };

  /// The fastest algorithm whose bits are the same for several products at once and for each by itself.
  static std::optional<blas_algorithm> fastest(const queue& q, const blas_product& what, const blas_call& call) {
    blas_product several = what, one = what;
    several.count = std::max(what.count, 2), one.count = 1;
    if (what.d.stride == 0) several.count = 1;  // it is always alone
    const auto candidates = call.algorithms(q);
    if (candidates.empty()) return {};
    const trial memory(q, several);
    const blas_call call_of_several(q, several), call_of_one(q, one);
    std::optional<blas_algorithm> best;
    double least = 0;
    for (const blas_algorithm& each : candidates) {
      if (!call_of_several.can_run(q, each) || !call_of_one.can_run(q, each)) continue;
      const long last = several.count - 1;
      call_of_several.run(q, each, memory.at(several, 0), false);
      const auto together = memory.result(q, several, last);
      call_of_one.run(q, each, memory.at(several, last), false);
      const auto alone = memory.result(q, several, last);
      if (together != alone) continue;
      const double time = call.milliseconds(q, each, memory.at(several, 0));
      if (!best || time < least) best = each, least = time;
    }
    return best;
  }
};

#endif

}  // namespace strata::machine
