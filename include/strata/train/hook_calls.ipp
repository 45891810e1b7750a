// Definitions of hook_calls.hpp.
#pragma once

namespace strata::detail {

STRATA_FUNCTION hook_list::hook_list(std::initializer_list<hook_calls*> options)
    : all_(options.size()), of_batches_(options.size()), of_tests_(options.size()) {
  for (hook_calls* c : options) {
    if (!c) continue;
    all_.add(c);
    if (c->sees_batches()) of_batches_.add(c);
    if (c->sees_tests()) of_tests_.add(c);
  }
}

STRATA_FUNCTION void hook_list::describe(std::vector<std::string>& lines) const {
  each_with_state([&](hook_calls& c, const std::string& name) {
    std::string& line = lines.emplace_back(text_of({"callback ", name.substr(0, name.size() - 1)}));
    if (const std::string settings = c.settings(); !settings.empty()) line += ": " + settings;
    if (c.has_arrays()) {
      const std::vector<named_array> arrays = c.arrays();
      std::size_t bytes = 0;
      for (const named_array& a : arrays) bytes += a.bytes.size();
      line += text_of({" with ", arrays.size(), " arrays of ", bytes, " bytes"});
    }
  });
}

STRATA_FUNCTION logs hook_list::state() const {
  logs all;
  each_with_state([&](hook_calls& c, const std::string& name) {
    for (const auto& [key, value] : c.state()) all.set(text_of({name, key}), value);
  });
  return all;
}

STRATA_FUNCTION void hook_list::set_state(const logs& all) const {
  each_with_state([&](hook_calls& c, const std::string& name) {
    logs own;
    for (const auto& [key, value] : all)
      if (key.starts_with(name)) own.set(key.substr(name.size()), value);
    c.set_state(own);
  });
}

STRATA_FUNCTION void hook_list::add_arrays(std::vector<named_array>& all) const {
  each_with_state([&](hook_calls& c, const std::string& name) {
    for (named_array& a : c.arrays()) all.push_back({text_of({"callback/", name, a.name}), std::move(a.extents), a.bytes});
  });
}

}  // namespace strata::detail
