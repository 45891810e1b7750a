// Options in the forms that plugins take: named values, and a CompileOptionsProto as bytes.
#pragma once
#include <cstdint>
#include <span>
#include <strata/xla/pjrt/abi.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace strata::pjrt {

/// An option of a plugin, such as {"cpu_device_count", std::int64_t(8)}. Some plugins end the process for a value of another type
/// than they expect.
struct option {
  std::string name;
  std::variant<std::string, std::int64_t, std::vector<std::int64_t>, float, bool> value;

  friend bool operator==(const option&, const option&) = default;
  friend auto operator<=>(const option&, const option&) = default;
};

namespace detail {
/// The result refers to the options.
inline std::vector<abi::named_value> named_values(std::span<const option> options) {
  std::vector<abi::named_value> out;
  for (const option& o : options) {
    abi::named_value v{};
    v.head.struct_size = sizeof v;
    v.name = o.name.data(), v.name_size = o.name.size(), v.size = 1;
    v.kind = abi::value_kind(int(o.value.index()));
    if (const auto* text = std::get_if<std::string>(&o.value))
      v.string = text->data(), v.size = text->size();
    else if (const auto* number = std::get_if<std::int64_t>(&o.value))
      v.int64 = *number;
    else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&o.value))
      v.int64_list = list->data(), v.size = list->size();
    else if (const auto* real = std::get_if<float>(&o.value))
      v.float32 = *real;
    else
      v.boolean = std::get<bool>(o.value);
    out.push_back(v);
  }
  return out;
}

/// The wire format of protobuf.  https://protobuf.dev/programming-guides/encoding
inline void append_varint(std::string& to, std::uint64_t value) {
  for (; value > 127; value >>= 7) to += char((value & 127) | 128);
  to += char(value);
}
inline void append_field(std::string& to, unsigned number, std::uint64_t value) {
  append_varint(to, number << 3);
  append_varint(to, value);
}
inline void append_field(std::string& to, unsigned number, std::string_view message) {
  append_varint(to, number << 3 | 2);
  append_varint(to, message.size());
  to += message;
}

/// Different bytes for different options: for keys of caches.
inline std::string bytes_of(std::span<const option> options) {
  std::string to;
  for (const option& o : options) {
    append_field(to, 1, o.name);
    std::visit(
        [&](const auto& value) {
          const auto bytes = [&] {
            if constexpr (requires { value.data(); })
              return std::as_bytes(std::span(value));
            else
              return std::as_bytes(std::span(&value, 1));
          }();
          append_field(to, unsigned(2 + o.value.index()), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        },
        o.value);
  }
  return to;
}
}  // namespace detail

/// An option of XLA's compiler, as text.
/// https://github.com/openxla/xla/blob/main/xla/xla.proto (DebugOptions)
struct compiler_option {
  std::string_view name, value;
};
/// The options that make modules of a platform faster, with the measurements of docs/decisions/xla/options_of_the_cpu.md.
inline std::span<const compiler_option> options_of_platform(std::string_view platform) {
  static constexpr compiler_option of_cpu[] = {{"xla_cpu_enable_concurrency_optimized_scheduler", "False"},
                                               {"xla_cpu_experimental_ynn_fusion_type", "LIBRARY_FUSION_TYPE_REDUCE"}};
  if (platform == "cpu") return of_cpu;
  return {};
}

/// A CompileOptionsProto for one replica on each of these devices: executable_build_options {num_replicas, num_partitions = 1,
/// device_assignment}, and env_option_overrides. Empty options would end the process in some plugins.
/// https://github.com/openxla/xla/blob/main/xla/pjrt/proto/compile_options.proto
inline std::string compile_options(std::span<const int> devices, std::span<const compiler_option> others = {}) {
  std::string ids, replicas, assignment, build, options;
  for (int id : devices) detail::append_varint(ids, std::uint64_t(id));
  detail::append_field(replicas, 1, ids);
  detail::append_field(assignment, 1, devices.size());
  detail::append_field(assignment, 2, 1);
  detail::append_field(assignment, 3, replicas);
  detail::append_field(build, 4, devices.size());
  detail::append_field(build, 5, 1);
  detail::append_field(build, 9, assignment);
  detail::append_field(options, 3, build);
  for (const compiler_option& o : others) {
    std::string value, entry;
    detail::append_field(value, 1, o.value);
    detail::append_field(entry, 1, o.name);
    detail::append_field(entry, 2, value);
    detail::append_field(options, 7, entry);
  }
  return options;
}

}  // namespace strata::pjrt
