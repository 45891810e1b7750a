// Models of concepts that lack a member.
// needs: openssl protozero

// case: resolver_without_call
// error: incomplete_model<.*resolver_of_mine.*because<.*a_resolver_such_as_tf_config_comes_first_and_returns_a_cluster_when_called>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/strata.hpp>

using namespace strata;
struct resolver_of_mine {
#ifdef TWIN
  cluster operator()() const { return cluster({.worker = {std::nullopt}}); }
#else
  cluster operator()(int) const { return cluster({.worker = {std::nullopt}}); }
#endif
};
multi_worker_mirrored strategy{resolver_of_mine{}};
