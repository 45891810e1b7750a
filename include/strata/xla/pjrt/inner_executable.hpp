// The result of compiling a module: an executable that is not loaded on any device.
#pragma once
#include <cstddef>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/xla/pjrt/abi.hpp>
#include <strata/xla/pjrt/plugin.hpp>
#include <string>
#include <string_view>

namespace strata::pjrt::detail {

/// The text must outlive the result.
inline abi::program program_of(std::string_view text) {
  constexpr std::string_view format = "mlir";
  abi::program p{};
  p.head.struct_size = sizeof p;
  p.code = text.data(), p.code_size = text.size();
  p.format = format.data(), p.format_size = format.size();
  return p;
}

/// Owns the executable that belongs to a loaded one, or that was compiled ahead of time.
class inner_executable {
  const plugin& plugin_;
  abi::executable* handle_;

 public:
  inner_executable(const plugin& p, abi::executable* handle) : plugin_(p), handle_(handle) {}
  inner_executable(const plugin& p, abi::loaded_executable* loaded) : plugin_(p) {
    abi::padded<abi::executable_of_loaded> arguments;
    arguments->loaded = loaded;
    p.call("look at a compiled module", abi::functions::loaded_executable_get_executable, arguments);
    handle_ = arguments->executable;
  }
  inner_executable(const inner_executable&) = delete;
  ~inner_executable() {
    abi::padded<abi::executable_only> arguments;
    arguments->executable = handle_;
    plugin_.call_quietly(abi::functions::executable_destroy, arguments);
  }
  abi::executable* handle() const { return handle_; }
};

/// Empty if the plugin cannot serialize.
inline std::optional<std::string> serialize(const plugin& p, const abi::executable* of) {
  abi::padded<abi::serialize> arguments;
  arguments->executable = of;
  if (!p.call_if_implemented("serialize", abi::functions::executable_serialize, arguments)) return {};
  std::string bytes(arguments->bytes, arguments->size);
  if (arguments->destroy) arguments->destroy(arguments->owner);
  return bytes;
}

}  // namespace strata::pjrt::detail
