// Chooses the devices of a plugin for a training.
#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <strata/base/environment.hpp>
#include <strata/base/error.hpp>
#include <strata/network/leaves.hpp>
#include <strata/xla/module.hpp>
#include <strata/xla/pjrt/client.hpp>
#include <strata/xla/pjrt/find_plugin.hpp>
#include <strata/xla/pjrt/options.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::core {

/// The devices on which an executor runs, and where it keeps compiled modules; empty: nowhere.
struct module_devices {
  std::shared_ptr<const pjrt::client> client;
  int replicas = 1;  // of all processes
  std::filesystem::path cache{};
  stablehlo::platform_traits traits{};
};

/// The first `replicas` devices of the plugin in that file; 0: all of them. A CPU plugin gets as many devices as requested,
/// unless the options have cpu_device_count. Throws strata_error if there are too few, or if more than max_leaves are
/// requested, which is checked before the plugin is called.
inline module_devices choose_devices(const std::filesystem::path& plugin, std::vector<pjrt::option> options, int replicas,
                                     std::filesystem::path cache) {
  if (replicas < 0) throw_error({"replicas is ", replicas, ": it must be at least 1, or 0 for all devices"});
  if (replicas > max_leaves) throw_error({"replicas is ", replicas, ": at most ", max_leaves, " can share a batch"});
  constexpr std::string_view count = "cpu_device_count";
  const auto counted = std::ranges::find(options, count, &pjrt::option::name);
  const bool is_counted = counted != options.end();
  if (is_counted) {  // another type would make the plugin end the process; it starts that many threads
    const std::int64_t* const given = std::get_if<std::int64_t>(&counted->value);
    if (!given || *given < 1 || *given > max_leaves)
      throw_error({"the option ", count, " takes a whole number, std::int64_t, from 1 to ", max_leaves});
  }
  const pjrt::plugin& p = pjrt::plugin::load(plugin);
  std::shared_ptr<const pjrt::client> client = pjrt::client::of(p, options);
  if (client->platform() == "cpu" && !is_counted && replicas > client->devices()) {
    options.push_back({std::string(count), std::int64_t(replicas)});
    client = pjrt::client::of(p, options);
  }
  if (replicas == 0) replicas = client->devices();
  if (replicas > client->devices())
    throw_error({"replicas is ", replicas, ", but the plugin ", p.path().string(), " has ", client->devices(),
                 client->devices() == 1 ? " device" : " devices"});
  if (cache.empty()) cache = detail::environment_variable("STRATA_XLA_CACHE");
  const stablehlo::platform_traits traits = stablehlo::traits_of_platform(client->platform());
  return {std::move(client), replicas, std::move(cache), traits};
}

/// All devices of all processes, which find each other through these values. Throws strata_error if the plugin has only
/// those of this process.
inline module_devices devices_of_processes(const std::filesystem::path& plugin, const std::vector<pjrt::option>& options,
                                           int processes, std::shared_ptr<pjrt::value_store> values,
                                           std::filesystem::path cache) {
  const pjrt::plugin& p = pjrt::plugin::load(plugin);
  std::shared_ptr<const pjrt::client> client = pjrt::client::among_processes(p, options, std::move(values));
  const int all = client->devices_of_all_hosts();
  if (all == client->devices())
    throw_error({"the plugin ", p.path().string(), " has only the ", all, " devices of this process, although ", processes,
                 " processes train together: it cannot form sums over processes"});
  if (cache.empty()) cache = detail::environment_variable("STRATA_XLA_CACHE");
  const stablehlo::platform_traits traits = stablehlo::traits_of_platform(client->platform());
  return {std::move(client), all, std::move(cache), traits};
}

}  // namespace strata::core
