// A backend that keeps activations within a budget: it computes some of them a second time instead of keeping them.
#pragma once
#include <algorithm>
#include <limits>
#include <strata/base/byte_sizes.hpp>
#include <strata/kernel/segmented.hpp>
#include <strata/program/compiled.hpp>
#include <strata/program/engine_for.hpp>
#include <strata/program/micro_batch.hpp>
#include <strata/program/recomputation.hpp>
#include <type_traits>
#include <utility>

namespace strata {

/// `one_device<fits_in<64_MiB>>{}`: the activations of the samples that a thread computes together, with their gradients and the
/// scratch memory of kernels, take at most so many bytes. If they would take more, the network is cut into pieces: only the
/// outputs of these are kept in the forward pass, and the backward pass of a piece first computes its activations again. Of 1, 2,
/// 3, 4, 6, 8, 11, ... pieces it takes the first number with which the budget suffices. Bits do not depend on it. A budget that
/// is too small does not compile, and the sentence says how much is needed. Chen et al., "Training deep nets with sublinear
/// memory cost" (2016), https://arxiv.org/abs/1604.06174
template <long Bytes, class Backend = default_backend>
struct fits_in {
  static constexpr auto name = Backend::name;
  static constexpr long most_bytes = Bytes;
  using whole = Backend;
  using device = device_of<Backend>;
};

template <long Bytes, class Backend, class Operation, class Precision, shape... In>
  requires(!std::is_void_v<typename find_kernel<Backend, Operation, Precision, In...>::type>)
struct kernel<fits_in<Bytes, Backend>, Operation, Precision, In...> : find_kernel<Backend, Operation, Precision, In...>::type {};

// The words of the sentence about fits_in. Never defined.
template <long Bytes>
struct in_bytes;
template <long Bytes>
struct at_least_bytes;
template <class Budget, class Needed, class Why>
struct activations_do_not_fit;
template <class Budget, class Why>
struct activations_cannot_be_computed_again;
inline constexpr reason batch_norm_needs_the_activations_of_all_samples_at_once_use_layer_norm_or_no_budget{
    "batch_norm needs the activations of all samples at once: use layer_norm, or train without a budget"};
inline constexpr reason so_much_is_needed_even_if_all_that_can_be_is_computed_again{
    "so much is needed even if all that can be is computed again: a larger budget, or fewer samples at a time"};

namespace detail {
/// The bytes that a thread needs for activations, at most: for micro-batches of that many samples.
template <int N>
constexpr long bytes_of_activations(const plan<N>& p, long samples, long bytes) {
  return (samples * (p.passing + p.scratch_per_sample) + p.scratch) * bytes;
}

template <class Program, class Backend, int Pieces>
inline constexpr auto plan_in_pieces = [] {
  auto p = made_plan<Program, whole_backend_of<Backend>, purpose::training>;
  if (p.segment_count == 1 && Pieces > 1) recompute_in_pieces(p, Pieces);
  return p;
}();

/// The first number of pieces, each about a quarter larger than the one before, that fits; 0: none does. Least: the least bytes
/// of those that were tried.
template <class Program, class Backend, int Pieces = 1, long Least = std::numeric_limits<long>::max()>
struct fitting_pieces {
  static constexpr const auto& tried = plan_in_pieces<Program, Backend, Pieces>;
  static constexpr long needed =
      std::min(Least, bytes_of_activations(tried, samples_in_cache<Program, Backend, purpose::training>(),
                                           long(sizeof(typename Program::value_type))));
  static constexpr auto search() {
    if constexpr (needed <= Backend::most_bytes)
      return std::pair<int, long>{Pieces, needed};
    else if constexpr (Pieces < tried.group_count && tried.segment_count == 1)
      return fitting_pieces<Program, Backend, Pieces + 1 + Pieces / 4, needed>::search();
    else
      return std::pair<int, long>{0, needed};
  }
};

template <class Program, bounds_activations Backend>
inline constexpr auto made_plan<Program, Backend, purpose::training> =
    plan_in_pieces<Program, Backend, std::max(1, fitting_pieces<Program, Backend>::search().first)>;

/// Whether the activations fit, or how much memory they need.
template <class Program, bounds_activations Backend>
struct backend_verdict<Program, Backend> {
  static constexpr bool has_statistics = plan_of<Program, Backend>.segment_count > 1;
  static constexpr auto found = fitting_pieces<Program, Backend>::search();
  static auto sentence() {
    using budget = in_bytes<Backend::most_bytes>;
    using needed = at_least_bytes<found.second>;
    if constexpr (has_statistics)
      return std::type_identity<activations_cannot_be_computed_again<
          budget, because<batch_norm_needs_the_activations_of_all_samples_at_once_use_layer_norm_or_no_budget>>>{};
    else if constexpr (found.first == 0)
      return std::type_identity<
          activations_do_not_fit<budget, needed, because<so_much_is_needed_even_if_all_that_can_be_is_computed_again>>>{};
    else
      return std::type_identity<no_complaint>{};
  }
  using type = typename decltype(sentence())::type;
};
}  // namespace detail

}  // namespace strata
