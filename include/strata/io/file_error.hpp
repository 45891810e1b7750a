// The error of a system call on a file.
#pragma once
#include <filesystem>
#include <strata/base/error.hpp>
#include <string_view>
#include <system_error>

namespace strata::io {

/// Throws strata_error, for example "cannot write /data/model: No space left on device".
[[noreturn]] inline void fail_on_file(std::string_view what, const std::filesystem::path& path, int code) {
  throw_error({"cannot ", what, ' ', path.string(), ": ", std::generic_category().message(code)});
}

}  // namespace strata::io
