// The strategy tpu: the chips of a TPU host.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <strata/base/error.hpp>
#include <strata/base/reason.hpp>
#include <strata/base/refused_arguments.hpp>
#include <strata/resolvers/environment.hpp>
#include <strata/xla/pjrt/find_plugin.hpp>
#include <strata/xla/runtime/choose_devices.hpp>
#include <strata/xla/runtime/executor.hpp>
#include <strata/xla/xla.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace strata {

/// The hosts of a TPU slice, and the number of the one on which this process runs.
struct tpu_hosts {
  int count = 1, index = 0;
};

/// The TPU chips of this machine, as its PCI bus names them; 0 on other machines.
/// https://github.com/jax-ml/jax/blob/main/jax/_src/hardware_utils.py has the numbers.
inline int tpu_chips(const std::filesystem::path& devices = "/sys/bus/pci/devices") {
  constexpr std::string_view google = "0x1ae0",
                             chips[] = {"0x0027" /* v2, v3 */, "0x0056",           "0x005e" /* v4 */, "0x0062" /* v5p */,
                                        "0x0063" /* v5e */,    "0x006f" /* v6e */, "0x0076" /* 7x */};
  const auto word = [](const std::filesystem::path& file) {
    std::string text;
    std::ifstream(file) >> text;
    return text;
  };
  int count = 0;
  std::error_code ignored;
  for (auto at = std::filesystem::directory_iterator(devices, ignored); at != std::filesystem::directory_iterator();
       at.increment(ignored))
    if (word(at->path() / "vendor") == google) count += std::ranges::find(chips, word(at->path() / "device")) != std::end(chips);
  return count;
}

/// Finds out where a process is in a TPU slice; called before the plugin is loaded.
template <class R>
concept tpu_resolver = std::copy_constructible<R> && requires(const R& resolver) {
  { resolver() } -> std::same_as<tpu_hosts>;
};

namespace detail {
inline tpu_hosts hosts_of_variables(const char* resolver, const environment_reader& environment, bool must_be_set) {
  const variables of(environment);
  const auto names = of.text("TPU_WORKER_HOSTNAMES");
  if (!names) {
    if (must_be_set) throw_error({resolver, ": TPU_WORKER_HOSTNAMES is not set: is this a pod that asks for google.com/tpu?"});
    return {};
  }
  tpu_hosts hosts;
  if (names->find_first_not_of(" ,") == names->npos || (',' + *names + ',').find(",,") != std::string::npos)
    throw_error({resolver, ": TPU_WORKER_HOSTNAMES is '", *names, "', where a name is empty"});
  hosts.count = 1 + int(std::count(names->begin(), names->end(), ','));
  const auto index = of.number("TPU_WORKER_ID", 0, most_processes);
  if (!index && hosts.count > 1)
    throw_error({resolver, ": TPU_WORKER_HOSTNAMES names ", hosts.count, " hosts, but TPU_WORKER_ID is not set"});
  hosts.index = index.value_or(0);
  if (hosts.index >= hosts.count)
    throw_error({resolver, ": TPU_WORKER_ID is ", hosts.index, ", but TPU_WORKER_HOSTNAMES names ", hosts.count,
                 hosts.count == 1 ? " host" : " hosts"});
  return hosts;
}
}  // namespace detail

/// A Cloud TPU VM: the plugin itself asks the VM's metadata server for its kind and place.
/// https://cloud.google.com/tpu/docs/system-architecture-tpu-vm
struct tpu_vm {
  environment_reader environment = process_environment;
  tpu_hosts operator()() const { return detail::hosts_of_variables("tpu_vm", environment, false); }
};

/// A pod of Google Kubernetes Engine that asks for google.com/tpu, which sets TPU_WORKER_HOSTNAMES and TPU_WORKER_ID. Throws
/// strata::error that names the variable if they are not set.
/// https://cloud.google.com/kubernetes-engine/docs/concepts/tpus
struct gke_tpu {
  environment_reader environment = process_environment;
  tpu_hosts operator()() const { return detail::hosts_of_variables("gke_tpu", environment, true); }
};

/// The program itself says what the metadata server would: explicit_tpu{.accelerator_type = "v5litepod-8"}. It sets the
/// environment variables that the plugin reads in place of asking.
struct explicit_tpu {
  std::string accelerator_type;
  tpu_hosts operator()() const {
    if (accelerator_type.empty()) throw_error("explicit_tpu: accelerator_type is empty: such as \"v5litepod-8\"");
    ::setenv("TPU_SKIP_MDS_QUERY", "1", 1);
    ::setenv("TPU_ACCELERATOR_TYPE", accelerator_type.c_str(), 1);
    ::setenv("TPU_WORKER_HOSTNAMES", "localhost", 1);
    ::setenv("TPU_WORKER_ID", "0", 1);
    return {};
  }
};

/// Options of tpu.
struct tpu_options {
  int replicas = 0;                     // chips; 0: all
  std::string plugin = "tpu";           // or a path
  std::filesystem::path cache{};        // a folder for compiled modules; empty: that of STRATA_XLA_CACHE, if it is set
  std::vector<pjrt::option> options{};  // of the plugin
};

/// Trains on the chips of this host: `tpu{}` on a TPU VM, `tpu{gke_tpu{}}` in a pod, `tpu{tpu_vm{}, {.replicas = 4}}` on 4 of
/// them. The plugin is libtpu (https://pypi.org/project/libtpu). The constructor of the trainer throws strata::error where there
/// is no TPU, and on a slice of several hosts, on which multi_worker_xla trains.
/// https://www.tensorflow.org/api_docs/python/tf/distribute/TPUStrategy
template <class Resolver = tpu_vm>
struct tpu {
  static constexpr auto name = "tpu";

  Resolver resolver{};
  tpu_options options{};

  template <class Program>
  using executor = module_executor<Program, detail::emitted_modules<Program>>;
  /// What is wrong with a program that has an operation without emission.
  template <class Program>
  using verdict = stablehlo::emission_verdict<Program>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, devices()};
  }
  module_devices devices() const {
    const tpu_hosts hosts = resolver();
    if (hosts.count > 1) refuse_several_hosts(hosts.count, " hosts");
    if (options.plugin == "tpu" && tpu_chips() == 0)  // where libtpu would ask a metadata server for minutes
      throw_error("tpu: this machine has no TPU: its PCI bus names none of Google's chips; xla{.plugin = \"cpu\"} runs anywhere");
    module_devices chosen = choose_devices(pjrt::find_plugin(options.plugin), options.options, options.replicas, options.cache);
    if (const int all = chosen.client->devices_of_all_hosts(); all > chosen.client->devices())
      refuse_several_hosts(all, " chips, of which this host has some only");
    return chosen;
  }

 private:
  [[noreturn]] static void refuse_several_hosts(int count, const char* what) {
    throw_error({"tpu: the slice has ", count, what,
                 ": tpu trains on the chips of one host, such as v5litepod-8, and "
                 "multi_worker_xla on those of several"});
  }
};
inline constexpr reason tpu_takes_a_resolver_and_options_such_as_tpu_vm_and_replicas_4{
    "tpu takes a resolver and options: tpu{tpu_vm{}, {.replicas = 4}}"};

template <class Given, const reason& Why>
struct tpu<detail::refused_arguments<Given, Why>> : detail::refusing<tpu<>> {
  static_assert(sizeof(detail::diagnosed<wrong_argument<Given, detail::because<Why>>>()));
  using detail::refusing<tpu<>>::refusing;
};

tpu() -> tpu<>;
template <tpu_resolver Resolver>
tpu(Resolver, tpu_options = {}) -> tpu<Resolver>;
template <class Given, class... More>
tpu(Given, More...) -> tpu<detail::refused_arguments<Given, tpu_takes_a_resolver_and_options_such_as_tpu_vm_and_replicas_4>>;

}  // namespace strata
