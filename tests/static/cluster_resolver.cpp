// Types that are cluster resolvers, and one for each member that may be missing.
#include <memory>
#include <strata/resolvers/any_cluster.hpp>
#include <strata/resolvers/explicit_cluster.hpp>
#include <strata/resolvers/kubernetes.hpp>
#include <strata/resolvers/mpirun.hpp>
#include <strata/resolvers/slurm.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/resolvers/torchrun.hpp>
using namespace strata;
using namespace strata::core;

static_assert(cluster_resolver<tf_config> && cluster_resolver<torchrun> && cluster_resolver<mpirun> && cluster_resolver<slurm>);
static_assert(cluster_resolver<any_cluster> && cluster_resolver<kubernetes> && cluster_resolver<explicit_cluster>);
static_assert(cluster_resolver<cluster (*)()>);

struct with_state {
  int calls = 0;
  cluster operator()() { return ++calls, cluster({.worker = {std::nullopt}}); }
};
static_assert(cluster_resolver<with_state>);

struct not_copyable {
  std::unique_ptr<int> state;
  cluster operator()() const;
};
struct with_argument {
  cluster operator()(int) const;
};
struct of_something_else {
  cluster_spec operator()() const;
};
static_assert(!cluster_resolver<not_copyable> && !cluster_resolver<with_argument> && !cluster_resolver<of_something_else>);
static_assert(!cluster_resolver<cluster> && !cluster_resolver<int>);

// A cluster never changes, but can be replaced.
static_assert(std::copyable<cluster> && !std::is_default_constructible_v<cluster>);

constexpr bool has_all_names() {
  for (const role r : all_roles) {
    if (!*name_of(r)) return false;
  }
  return all_roles.size() == 4;
}
static_assert(has_all_names());
