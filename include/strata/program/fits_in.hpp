// A backend that keeps activations within a budget: it computes some of them a second time instead of keeping them.
#pragma once
#include <algorithm>
#include <limits>
#include <strata/base/byte_sizes.hpp>
#include <strata/kernel/segmented.hpp>
#include <strata/network/work.hpp>
#include <strata/program/compiled.hpp>
#include <strata/program/engine_for.hpp>
#include <strata/program/micro_batch.hpp>
#include <strata/program/recomputation.hpp>
#include <type_traits>

namespace strata {

/// `one_device<fits_in<64_MiB>>{}`: the activations of the samples that a thread computes together, with their gradients and the
/// scratch memory of kernels, take at most this many bytes. If they would take more, a thread computes fewer samples together, or
/// the network is cut into pieces: the forward pass keeps only the outputs of pieces, and the backward pass of a piece first
/// recomputes its activations. Of 1, 2, 3, 4, 6, 8, 11, ... pieces and 256, 128, 64, ... samples, the combination with the
/// shortest estimated time is used. The results have the same bits. A budget that is too small for one sample does not compile;
/// the diagnostic has the bytes needed. Chen et al., "Training deep nets with sublinear memory cost" (2016),
/// https://arxiv.org/abs/1604.06174
template <long Bytes, class Backend = core::default_backend>
struct fits_in {
  static constexpr auto name = Backend::name;
  static constexpr long most_bytes = Bytes;
  using whole = Backend;
  using device = core::device_of<Backend>;
};

namespace core {
template <long Bytes, class Backend, class Operation, class Precision, shape... In>
  requires(!std::is_void_v<typename find_kernel<Backend, Operation, Precision, In...>::type>)
struct kernel<fits_in<Bytes, Backend>, Operation, Precision, In...> : find_kernel<Backend, Operation, Precision, In...>::type {};

// The parts of the diagnostic about fits_in. Never defined.
template <long Bytes>
struct in_bytes;
template <long Bytes>
struct at_least_bytes;
template <class Budget, class Needed, class Why>
struct activations_do_not_fit;
template <class Budget, class Why>
struct activations_cannot_be_computed_again;
}  // namespace core
namespace reasons {
inline constexpr reason batch_norm_needs_the_activations_of_all_samples_at_once_use_layer_norm_or_no_budget{
    "batch_norm needs the activations of all samples at once: use layer_norm, or train without a budget"};
inline constexpr reason a_GPU_computes_all_samples_of_a_batch_at_once_take_smaller_batches{
    "fits_in limits what a thread of the CPU computes at once, but a GPU computes all samples of a batch at once: take smaller "
    "batches, and one_device{gpu(0)}"};
inline constexpr reason so_much_is_needed_for_one_sample_even_if_all_that_can_be_is_computed_again{
    "one sample needs this much, even if everything possible is computed again"};
}  // namespace reasons

namespace detail {
/// The bytes of activations that a thread needs at most, for micro-batches of `samples` samples.
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

/// How a program is computed within a budget. pieces: 0 if it does not fit; then `needed` is the number of bytes for one sample.
struct budgeted_work {
  int pieces = 0, samples = 1;
  long needed = std::numeric_limits<long>::max();
};
/// Samples per pass at which reading the weights takes as long as computing.
template <class Program>
inline constexpr int samples_for_weights = reuses_weights<typename Program::network> ? 0 : 16;
/// About how long a step takes, in twelfths of one that reads no weights and computes nothing twice. With several pieces, about a
/// third of the work is done again.
template <class Program>
constexpr long time_of(int pieces, int samples) {
  return (pieces > 1 ? 16 : 12) * (1024L + 1024 * samples_for_weights<Program> / samples) / 1024;
}

/// The largest of `most`, `most` / 2, ... samples that fit; 0: not one does.
template <class Program, class Backend, int N>
constexpr int fitting_samples(const plan<N>& p, int most) {
  while (most > 0 && bytes_of_activations(p, most, long(sizeof(typename Program::value_type))) > Backend::most_bytes) most /= 2;
  return most;
}

/// Tries Pieces and more of them, each about a quarter more than before, until more cannot take less time than Best.
template <class Program, class Backend, int Pieces = 1, budgeted_work Best = budgeted_work{}>
constexpr budgeted_work work_in_budget() {
  constexpr const auto& tried = plan_in_pieces<Program, Backend, Pieces>;
  constexpr int in_cache = samples_in_cache<Program, Backend, purpose::training>();
  constexpr budgeted_work best = [] {
    budgeted_work work = Best;
    work.needed = std::min(work.needed, bytes_of_activations(tried, 1, long(sizeof(typename Program::value_type))));
    const int samples = fitting_samples<Program, Backend>(tried, in_cache);
    if (samples > 0 && (work.pieces == 0 || time_of<Program>(Pieces, samples) < time_of<Program>(work.pieces, work.samples)))
      work.pieces = Pieces, work.samples = samples;
    return work;
  }();
  constexpr bool is_fastest = best.pieces > 0 && time_of<Program>(best.pieces, best.samples) <= time_of<Program>(2, in_cache);
  if constexpr (!is_fastest && Pieces < tried.group_count && tried.segment_count == 1)
    return work_in_budget<Program, Backend, Pieces + 1 + Pieces / 4, best>();
  else
    return best;
}
template <class Program, class Backend>
inline constexpr budgeted_work budgeted_work_of = work_in_budget<Program, Backend>();

template <class Program, bounds_activations Backend>
inline constexpr auto made_plan<Program, Backend, purpose::training> =
    plan_in_pieces<Program, Backend, std::max(1, budgeted_work_of<Program, Backend>.pieces)>;

/// Checks that the activations fit; if not, the diagnostic has the memory that they need.
template <class Program, bounds_activations Backend>
struct backend_verdict<Program, Backend> {
  static constexpr bool is_on_host = device_of<Backend>::is_host;
  static constexpr bool has_statistics = plan_of<Program, Backend>.segment_count > 1;
  static constexpr budgeted_work found = budgeted_work_of<Program, Backend>;
  static auto sentence() {
    using budget = in_bytes<Backend::most_bytes>;
    using needed = at_least_bytes<found.needed>;
    if constexpr (!is_on_host)
      return std::type_identity<activations_cannot_be_computed_again<
          budget, because<reasons::a_GPU_computes_all_samples_of_a_batch_at_once_take_smaller_batches>>>{};
    else if constexpr (has_statistics)
      return std::type_identity<activations_cannot_be_computed_again<
          budget, because<reasons::batch_norm_needs_the_activations_of_all_samples_at_once_use_layer_norm_or_no_budget>>>{};
    else if constexpr (found.pieces == 0)
      return std::type_identity<activations_do_not_fit<
          budget, needed, because<reasons::so_much_is_needed_for_one_sample_even_if_all_that_can_be_is_computed_again>>>{};
    else
      return std::type_identity<no_complaint>{};
  }
  using type = typename decltype(sentence())::type;
};
}  // namespace detail

namespace core {
/// A plan for inference only has no pieces, because it keeps no activations for a backward pass.
template <class Program, bounds_activations Backend, purpose Why>
struct samples_at_a_time<Program, Backend, Why> {
  static constexpr int of(int = 0) {
    if constexpr (Why == purpose::training || !has_two_plans<Program, Backend>)
      return detail::budgeted_work_of<Program, Backend>.samples;
    else
      return std::max(1, detail::fitting_samples<Program, Backend>(plan_of<Program, Backend, Why>,
                                                                   samples_in_cache<Program, Backend, Why>()));
  }
  static constexpr int most(int wanted) { return std::min(wanted, of()); }
};
}  // namespace core

}  // namespace strata
