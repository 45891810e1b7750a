// error: incomplete_model<.*resolver_of_mine.*because<.*resolvers_return_a_cluster_when_called_without_arguments>
// needs: grpc protozero
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
