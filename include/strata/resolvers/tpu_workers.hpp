// tpu_workers: the hosts of a TPU slice.
#pragma once
#include <cstdint>
#include <strata/resolvers/environment.hpp>
#include <string>
#include <string_view>

namespace strata {

/// One worker on each host, as TPU_WORKER_HOSTNAMES lists them; this process is number TPU_WORKER_ID. Kubernetes Engine sets both
/// in pods that ask for google.com/tpu; on TPU VMs, tpu_vms asks the metadata server. Worker 0 coordinates, at `port`. Throws
/// strata::error that names the variable. https://cloud.google.com/kubernetes-engine/docs/concepts/tpus
struct tpu_workers {
  std::uint16_t port = 8476;
  environment_reader environment = process_environment;

  cluster operator()() const {
    return detail::resolved_by("tpu_workers", [&] {
      const detail::variables of(environment);
      const auto names = of.text("TPU_WORKER_HOSTNAMES");
      if (!names) throw_error("TPU_WORKER_HOSTNAMES is not set: it lists the hosts of the slice, such as a,b");
      cluster_spec spec;
      for (std::string_view rest = *names;;) {
        const std::string_view host = rest.substr(0, rest.find(','));
        spec.worker.push_back(endpoint{std::string(host), port});
        if (host.empty()) throw_error({"TPU_WORKER_HOSTNAMES is '", *names, "', where a name is empty"});
        if (host.size() == rest.size()) break;
        rest.remove_prefix(host.size() + 1);
      }
      spec.task = {role::worker, of.number("TPU_WORKER_ID", 0, detail::most_processes, "it is the number of this host")};
      return spec;
    });
  }
};

}  // namespace strata
