// The strategy tpu: the chips of a TPU host.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <strata/base/error.hpp>
#include <strata/resolvers/tpu_workers.hpp>
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

/// The number of TPU chips of this machine, by the ids on its PCI bus; 0 on other machines.
/// https://github.com/jax-ml/jax/blob/main/jax/_src/hardware_utils.py has the ids.
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

/// Trains on the chips of this host: `tpu{}` on a TPU VM and in a pod of Kubernetes Engine that asks for google.com/tpu,
/// `tpu{.replicas = 4}` on 4 of them. The plugin is libtpu (https://pypi.org/project/libtpu), which asks the VM's metadata server
/// for the kind of its chips. The constructor of the trainer throws strata_error where there is no TPU, and on a slice of
/// several hosts, on which multi_worker_xla trains. https://www.tensorflow.org/api_docs/python/tf/distribute/TPUStrategy
struct tpu {
  static constexpr auto name = "tpu";

  std::string plugin = "tpu";           // or a path
  int replicas = 0;                     // chips; 0: all
  std::filesystem::path cache{};        // a folder for compiled modules; empty: that of STRATA_XLA_CACHE, if it is set
  std::vector<pjrt::option> options{};  // of the plugin
  /// Where there is no metadata server, the kind of the chips, such as "v5litepod-8": the environment variables that the plugin
  /// reads in place of asking are set to it.
  std::string accelerator_type{};
  core::environment_reader environment = core::process_environment;

  template <class Program>
  using executor = core::module_executor<Program, detail::emitted_modules<Program>>;
  /// The diagnostic about an operation of the program that has no emission.
  template <class Program>
  using verdict = stablehlo::emission_verdict<Program>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, devices()};
  }
  core::module_devices devices() const {
    if (!accelerator_type.empty()) {
      ::setenv("TPU_SKIP_MDS_QUERY", "1", 1);
      ::setenv("TPU_ACCELERATOR_TYPE", accelerator_type.c_str(), 1);
      ::setenv("TPU_WORKER_HOSTNAMES", "localhost", 1);
      ::setenv("TPU_WORKER_ID", "0", 1);
    }
    if (const auto hosts = detail::hosts_of_slice(detail::variables(environment)); hosts.size() > 1)
      refuse_several_hosts(int(hosts.size()), " hosts");
    if (plugin == "tpu" && tpu_chips() == 0)  // where libtpu would ask a metadata server for minutes
      throw_error("tpu: this machine has no TPU: its PCI bus has none of Google's chips; xla{.plugin = \"cpu\"} runs anywhere");
    core::module_devices chosen = core::choose_devices(pjrt::find_plugin(plugin), options, replicas, cache);
    if (const int all = chosen.client->devices_of_all_hosts(); all > chosen.client->devices())
      refuse_several_hosts(all, " chips, of which this host has only some");
    return chosen;
  }

 private:
  [[noreturn]] static void refuse_several_hosts(int count, const char* what) {
    throw_error({"tpu: the slice has ", count, what,
                 ": tpu trains on the chips of one host, such as v5litepod-8, and "
                 "multi_worker_xla on those of several"});
  }
};

}  // namespace strata
