// Compiled modules on disk, so that the next process need not compile them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <strata/base/environment.hpp>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/file_error.hpp>
#include <strata/io/mapped_file.hpp>
#include <strata/io/sha256.hpp>
#include <strata/xla/pjrt/client.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace strata::pjrt {

/// A folder with a file for each module, whose name is a digest of the module's text, the plugin's file and options, the version
/// and kind of its devices and their ids among those of all processes, the environment variables XLA_FLAGS and LIBTPU_INIT_ARGS,
/// the contents of the file that XLA_FLAGS may name in place of flags and, if the device is this machine's processor, its
/// instruction sets. A damaged file is ignored and its module compiled again. Compiled modules are code: only trusted users may
/// write to the folder.
class executable_cache {
  std::filesystem::path folder_;

 public:
  /// folder: empty to keep nothing. It is created when it is first needed.
  explicit executable_cache(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}

  /// The module, from the folder or compiled; it is not kept if the plugin cannot serialize it. Throws what compiling throws, and
  /// strata_error if the folder cannot be written.
  executable compile(const client& c, const stablehlo::module_text& module) const {
    if (folder_.empty()) return c.compile(module);
    const std::string name = key(c, module);
    const std::filesystem::path file = folder_ / (name + ".xla");
    STRATA_TRY {
      if (const std::optional<std::string> bytes = read(file, name)) return c.load(*bytes, module);
    }
    STRATA_CATCH(const strata_error& failure) {}  // unreadable, or of a version that the plugin no longer takes
    std::error_code failure;
    std::filesystem::create_directories(folder_, failure);
    if (failure) io::fail_on_file("create the folder", folder_, failure.value());
    executable e = c.compile(module);
    const std::optional<std::string> bytes = e.serialized();
    if (!bytes) return e;
    io::atomic_file to(file);
    to.write(digest(name, *bytes));
    to.write(*bytes);
    to.commit();
    return e;
  }

  static std::string key(const client& c, const stablehlo::module_text& module) {
    io::sha256 hash;
    const auto add = [&hash](std::string_view text) {
      hash.update({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
      constexpr std::uint8_t end = 0;
      hash.update({&end, 1});
    };
    add("strata 1");
    add(module.text);
    add(c.description(module));
    const std::filesystem::path& plugin = c.of_plugin().path();
    std::error_code ignored;
    add(plugin.string());
    add(strata::detail::text_of({std::uint64_t(std::filesystem::file_size(plugin, ignored)), ' ',
                                 std::int64_t(std::filesystem::last_write_time(plugin, ignored).time_since_epoch().count())}));
    for (const char* const flags : {"XLA_FLAGS", "LIBTPU_INIT_ARGS"}) add(strata::detail::environment_variable(flags));
    add(flags_in_file(strata::detail::environment_variable("XLA_FLAGS")));
    if (c.platform() == "cpu") add(processor());
    return hash.hex();
  }

  /// XLA_FLAGS that does not begin with a dash is the name of a file with flags.
  /// https://github.com/openxla/xla/blob/main/xla/parse_flags_from_env.cc
  static std::string flags_in_file(const std::string& flags) {
    const std::size_t begin = flags.find_first_not_of(" \t\r\n");
    if (begin == flags.npos || flags[begin] == '-') return {};
    STRATA_TRY { return io::content_of(flags.substr(begin, flags.find_last_not_of(" \t\r\n") + 1 - begin)); }
    STRATA_CATCH(const strata_error& e) { return {}; }
  }

 private:
  static constexpr std::size_t digits = 64;

  static std::string digest(std::string_view name, std::string_view bytes) {
    io::sha256 hash;
    for (const std::string_view each : {name, bytes})
      hash.update({reinterpret_cast<const std::uint8_t*>(each.data()), each.size()});
    return hash.hex();
  }
  /// The contents of a file, if it is complete and has the module with that name.
  static std::optional<std::string> read(const std::filesystem::path& file, std::string_view name) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) return {};
    const io::mapped_file mapped(file);
    const std::string_view all(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
    if (all.size() < digits || digest(name, all.substr(digits)) != all.substr(0, digits)) return {};
    return std::string(all.substr(digits));
  }
  /// The instruction sets of this machine's processor.
  static std::string processor() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("flags") || line.starts_with("Features")) return line;
    return {};
  }
};

}  // namespace strata::pjrt
