// tpu_workers: the hosts of a TPU slice.
#pragma once
#include <cstdint>
#include <strata/resolvers/environment.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

namespace detail {
/// The hosts that TPU_WORKER_HOSTNAMES lists; none if it is not set. Throws strata_error if a name is empty.
inline std::vector<std::string> hosts_of_slice(const variables& environment) {
  std::vector<std::string> hosts;
  const std::string all = environment.text("TPU_WORKER_HOSTNAMES").value_or("");
  for (std::string_view rest = all; !all.empty();) {
    const std::string_view host = rest.substr(0, rest.find(','));
    if (host.find_first_not_of(' ') == host.npos) throw_error({"TPU_WORKER_HOSTNAMES is '", all, "', in which a name is empty"});
    hosts.emplace_back(host);
    if (host.size() == rest.size()) break;
    rest.remove_prefix(host.size() + 1);
  }
  return hosts;
}
}  // namespace detail

/// One worker on each host in TPU_WORKER_HOSTNAMES; this process is number TPU_WORKER_ID. Kubernetes Engine sets both in pods
/// that request google.com/tpu; on TPU VMs, tpu_vms queries the metadata server. Worker 0 coordinates, at `port`. Throws
/// strata_error with the name of the variable. https://cloud.google.com/kubernetes-engine/docs/concepts/tpus
struct tpu_workers {
  std::uint16_t port = 8476;
  core::environment_reader environment = core::process_environment;

  cluster operator()() const {
    return detail::resolved_by("tpu_workers", [&] {
      const detail::variables of(environment);
      cluster_spec spec;
      for (const std::string& host : detail::hosts_of_slice(of)) spec.worker.push_back(core::endpoint{host, port});
      if (spec.worker.empty()) throw_error("TPU_WORKER_HOSTNAMES is not set: it lists the hosts of the slice, such as a,b");
      spec.task = {role::worker, of.number("TPU_WORKER_ID", 0, detail::most_processes, "it is the number of this host")};
      return spec;
    });
  }
};

}  // namespace strata
