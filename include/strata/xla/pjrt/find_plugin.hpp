// Finds the files of plugins.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <strata/base/environment.hpp>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace strata::pjrt {

/// A platform: its name, its package on PyPI, and the file of the plugin in it.
struct known_plugin {
  std::string_view platform, package, file;
};

inline constexpr known_plugin known_plugins[] = {
    {"cpu", "xla-cpu-pjrt", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"},
    {"tpu", "libtpu", "libtpu/libtpu.so"},
    {"cuda", "jax-cuda13-pjrt", "jax_plugins/xla_cuda13/xla_cuda_plugin.so"},
    {"cuda", "jax-cuda12-pjrt", "jax_plugins/xla_cuda12/xla_cuda_plugin.so"},
};

namespace detail {
/// The 12 of a folder python3.12; 0 of a folder python3, which Debian's packages of all versions share.
inline int minor_version_of_python(std::string_view folder) {
  constexpr std::string_view major = "python3.";
  int minor = 0;
  if (folder.starts_with(major)) std::from_chars(folder.data() + major.size(), folder.data() + folder.size(), minor);
  return minor;
}

/// The folders where Pythons install packages: of the active virtual or conda environment, of the user, of the system.
inline std::vector<std::filesystem::path> homes_of_pythons() {
  namespace fs = std::filesystem;
  std::vector<fs::path> roots;
  for (const char* const environment : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string active = strata::detail::environment_variable(environment); !active.empty())
      roots.emplace_back(fs::path(active) / "lib");
  if (const std::string home = strata::detail::environment_variable("HOME"); !home.empty())
    roots.emplace_back(fs::path(home) / ".local/lib");
  roots.insert(roots.end(), {"/usr/local/lib", "/usr/lib"});
  return roots;
}

/// The folders that pip installs into, newest Python first.
inline std::vector<std::filesystem::path> folders_of_packages() {
  namespace fs = std::filesystem;
  std::vector<fs::path> out;
  for (const fs::path& root : homes_of_pythons()) {
    std::vector<std::pair<int, fs::path>> pythons;
    std::error_code ignored;
    for (auto at = fs::directory_iterator(root, ignored); at != fs::directory_iterator(); at.increment(ignored))
      if (const std::string name = at->path().filename().string(); name.starts_with("python3"))
        pythons.emplace_back(minor_version_of_python(name), at->path());
    std::sort(pythons.rbegin(), pythons.rend());
    for (const auto& [version, python] : pythons)
      for (const char* packages : {"site-packages", "dist-packages"}) out.push_back(python / packages);
  }
  return out;
}
}  // namespace detail

/// The file of a plugin. `wanted` is a path, or the name of a platform whose plugin pip has installed: "cpu", "tpu" or "cuda".
/// Empty: the value of the environment variable STRATA_XLA_PLUGIN, in the same form, or "cpu" if it is not set. For "tpu",
/// TPU_LIBRARY_PATH goes first, as in JAX. Throws strata_error with the folders searched and the package to install.
inline std::filesystem::path find_plugin(std::string wanted = "") {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::string from;
  if (wanted.empty()) {
    wanted = strata::detail::environment_variable("STRATA_XLA_PLUGIN");
    if (!wanted.empty()) from = "STRATA_XLA_PLUGIN is ";
  }
  if (wanted.empty()) wanted = "cpu";
  if (wanted.find('/') != wanted.npos || wanted.ends_with(".so")) {
    if (!fs::exists(wanted, ignored)) throw_error({from, wanted, ": there is no such plugin"});
    return fs::absolute(wanted, ignored);  // a loader looks for a name without a folder elsewhere
  }
  if (wanted == "tpu")
    if (const std::string path = strata::detail::environment_variable("TPU_LIBRARY_PATH"); !path.empty()) {
      if (!fs::exists(path, ignored)) throw_error({"TPU_LIBRARY_PATH is ", path, ": there is no such plugin"});
      return path;
    }
  std::string packages;
  const std::vector<fs::path> folders = detail::folders_of_packages();
  for (const known_plugin& known : known_plugins) {
    if (known.platform != wanted) continue;
    for (const fs::path& folder : folders)
      if (const fs::path file = folder / known.file; fs::exists(file, ignored)) return file;
    packages += strata::detail::text_of({packages.empty() ? "" : " or ", known.package});
  }
  if (wanted == "tpu")
    for (const char* file : {"/lib/libtpu.so", "/usr/lib/libtpu.so"})
      if (fs::exists(file, ignored)) return file;
  if (packages.empty()) throw_error({from, wanted, ": a plugin is a path, \"cpu\", \"tpu\" or \"cuda\""});
  std::string places;
  for (const fs::path& root : detail::homes_of_pythons())
    places += strata::detail::text_of({places.empty() ? "" : ", ", root.string()});
  const bool is_active = !strata::detail::environment_variable("VIRTUAL_ENV").empty() ||
                         !strata::detail::environment_variable("CONDA_PREFIX").empty();
  throw_error({"there is no PJRT plugin for ", wanted, " in the packages of the Pythons in ", places, ": install ", packages,
               " with pip", is_active ? "" : ", or activate the environment that has it (VIRTUAL_ENV is not set)",
               ", or name the plugin by its path"});
}

}  // namespace strata::pjrt
