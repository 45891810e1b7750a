// How the batches of a program are cut into leaves.
#pragma once
#include <bit>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/network/leaves.hpp>
#include <strata/network/work.hpp>
#include <strata/program/program.hpp>

namespace strata {

namespace detail {
/// Throws strata_error for a negative number of threads or of samples.
template <class Options>
void refuse_negative(const Options& how) {
  if constexpr (requires { how.threads; })
    if (how.threads < 0)
      throw_error({"compute_options: threads is ", how.threads, ": it must be at least 1, or 0 for all cores"});
  if constexpr (requires { how.micro_batch; })
    if (how.micro_batch < 0)
      throw_error({"compute_options: micro_batch is ", how.micro_batch,
                   ": it must be at least 1, or 0 for as many samples as fit into the cache"});
}
}  // namespace detail

namespace core {
/// leaves: the leaves of each batch, 0 for default_leaves. A batch has at least one leaf for each process that shares it.
/// Throws strata_error if `leaves` or `processes` exceeds max_leaves, or if `leaves` is negative.
template <class Program>
constexpr leaf_policy leaf_policy_of(int leaves, int processes) {
  if (leaves < 0 || leaves > max_leaves)
    throw_error({"the option leaves is ", leaves, ", but a batch has 1 to ", max_leaves, " of them (0: by its size)"});
  if (processes > max_leaves)
    throw_error({processes, " processes cannot share the leaves of a batch: there are at most ", max_leaves});
  return {leaves, int(std::bit_ceil(unsigned(processes))), reuses_weights<whole_network_of<typename Program::network>>};
}
/// The policy for the options of an engine. Throws strata_error if one of them is negative, too.
template <class Program, class Options>
  requires requires(const Options& how) { how.leaves; }
leaf_policy leaf_policy_of(const Options& how, int processes) {
  detail::refuse_negative(how);
  return leaf_policy_of<Program>(how.leaves, processes);
}
}  // namespace core

}  // namespace strata
