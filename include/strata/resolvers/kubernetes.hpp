// kubernetes: the pods of an Indexed Job or a StatefulSet with a headless Service.
#pragma once
#include <strata/base/text.hpp>
#include <strata/resolvers/numbered.hpp>

namespace strata {

/// Pods are named "training-0", "training-1", ...: HOSTNAME, or JOB_COMPLETION_INDEX of an Indexed Job, numbers this one, and
/// training-N.SERVICE is the address of another. Options that are left out are read from the environment: STRATA_SERVICE (the
/// headless Service), STRATA_REPLICAS (the number of pods), STRATA_FIRST_ORDINAL (spec.ordinals.start of a StatefulSet, default
/// 0), STRATA_JOB (the name of the Job or StatefulSet, needed only where HOSTNAME is that of the node, as with hostNetwork),
/// STRATA_PORT (default 2222), and POD_NAMESPACE, needed only where pods do not search their own namespace. Throws
/// strata_error that names the variable.
/// https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#stable-network-id
struct kubernetes {
  std::string service{};
  int replicas = 0;
  std::uint16_t port = 0;
  std::string pod_namespace{};
  core::numbered_roles roles{};
  std::string job{};
  std::optional<int> first_ordinal{};
  core::environment_reader environment = core::process_environment;

  cluster operator()() const {
    return detail::resolved_by("kubernetes", [&] {
      using namespace detail;
      const variables variables(environment);
      const int pods = replicas != 0 ? replicas
                                     : variables.number("STRATA_REPLICAS", 1, most_processes,
                                                        "set it to the number of pods, 'replicas' of the StatefulSet or "
                                                        "'completions' of the Job");
      if (pods < 1) throw_error({"replicas is ", pods, ", but a cluster has at least one pod"});
      const std::string name_of_service = service.empty() ? variables.text("STRATA_SERVICE").value_or("") : service;
      if (name_of_service.empty())
        throw_error("STRATA_SERVICE is not set: set it to the name of the headless Service of the pods");
      const auto [set, ordinal] = name_and_ordinal(variables);
      const int first = first_ordinal ? *first_ordinal : variables.number("STRATA_FIRST_ORDINAL", 0, highest_ordinal).value_or(0);
      if (first < 0 || first > highest_ordinal) throw_error({"first_ordinal is ", first, ", but ordinals begin with 0 or more"});
      const int number = ordinal - first;
      if (number < 0 || number >= pods)
        throw_error(
            formatted("this pod is %s-%d, but there are %d from %s-%d on: is STRATA_REPLICAS that of the StatefulSet or Job, "
                      "and STRATA_FIRST_ORDINAL spec.ordinals.start of the StatefulSet?",
                      set.c_str(), ordinal, pods, set.c_str(), first));
      refuse_contradictions({"HOSTNAME", numbered_by::kubernetes, number, pods}, process_numbers(variables));

      cluster_spec spec = numbered_spec(number, pods, roles);
      const std::string space = pod_namespace.empty() ? variables.text("POD_NAMESPACE").value_or("") : pod_namespace;
      const std::string domain =
          detail::text_of({'.', name_of_service, space.empty() ? "" : detail::text_of({'.', space, ".svc"})});
      const int listening = port ? port : variables.number("STRATA_PORT", 1, highest_port).value_or(2222);
      for (int i = 0; i < pods; ++i)
        numbered_address(spec, static_cast<std::size_t>(i)) =
            core::parse_endpoint(detail::text_of({set, '-', first + i, domain, ':', listening}));
      spec.run_id = variables.text(run_id_variable).value_or("");
      return spec;
    });
  }

 private:
  static constexpr int highest_ordinal = 1'000'000'000;

  /// The name and ordinal of this pod. JOB_COMPLETION_INDEX, set by Kubernetes, goes first: HOSTNAME may be that of a node.
  std::pair<std::string, int> name_and_ordinal(const detail::variables& variables) const {
    const std::string hostname = variables.text("HOSTNAME").value_or("");
    const std::string name = job.empty() ? variables.text("STRATA_JOB").value_or("") : job;
    const std::optional<int> index = variables.number("JOB_COMPLETION_INDEX", 0, highest_ordinal);
    if (index && !name.empty()) return {name, *index};
    const auto found = split(hostname);
    if (index && *index != found.second)
      throw_error({"JOB_COMPLETION_INDEX is ", *index, ", but HOSTNAME is '", hostname,
                   "', as with hostNetwork, where it is the name of the node: set STRATA_JOB to the name of the Job"});
    if (found.second < 0)
      throw_error({"HOSTNAME is '", hostname,
                   "', which does not end in -N: the pod must belong to a StatefulSet, or to a Job with completionMode Indexed"});
    if (!name.empty() && name != found.first)
      throw_error(
          {"HOSTNAME is '", hostname, "', but STRATA_JOB is ", name, ": set HOSTNAME to the name of the pod, ", name, "-N"});
    return found;
  }

  /// "training-3" is {"training", 3}; so is "training-3.service", for pods whose host name is the full name. -1: there is no
  /// number.
  static std::pair<std::string, int> split(const std::string& hostname) {
    const std::string name = hostname.substr(0, hostname.find('.'));
    const std::size_t dash = name.rfind('-');
    if (dash == name.npos || dash == 0) return {name, -1};
    int ordinal = -1;
    const auto [end, failed] = std::from_chars(name.data() + dash + 1, name.data() + name.size(), ordinal);
    if (failed != std::errc() || end != name.data() + name.size() || ordinal > highest_ordinal) ordinal = -1;
    return {name.substr(0, dash), ordinal};
  }
};

}  // namespace strata
