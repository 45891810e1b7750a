// Whether the layers of a file have the options of the network's: weights of equal shapes may belong to different computations.
#pragma once
#include <cmath>
#include <map>
#include <strata/base/json.hpp>
#include <strata/base/text.hpp>
#include <strata/interop/keras/layer_list.hpp>
#include <strata/interop/keras/model_config.hpp>
#include <strata/train/model_view.hpp>
#include <strata/train/weights_file.hpp>
#include <string>
#include <vector>

namespace strata::keras {

/// An option as a text that is the same for all notations of it: 2 and [2, 2], "swish" and "silu", a function by name.
inline std::string option_text(const json& value) {
  if (value.is_object()) return value.contains("config") && value["config"].is_string() ? option_text(value["config"]) : "";
  if (value.is_number()) return detail::formatted("%.6g", value.get<double>());
  if (value.is_string()) return value == "swish" ? "silu" : value == "hard_swish" ? "hard_silu" : value.get<std::string>();
  if (!value.is_array() || value.size() != 2 || !value[0].is_number()) return "";
  return value[0] == value[1] ? option_text(value[0]) : detail::text_of({option_text(value[0]), " x ", option_text(value[1])});
}

/// Adds the options of layers with weights that differ, for an architecture of Keras whose layers are in one list. Unknown
/// options are not compared.
inline void compare_options(const json& architecture, const model_view& model, const layer_list& list,
                            detail::misfits& differences) {
  static constexpr const char* options[] = {"activation", "strides",          "dilation_rate", "padding",
                                            "groups",     "depth_multiplier", "epsilon"};
  if (!architecture.is_object() || !architecture.contains("config")) return;
  const json& config = architecture["config"];
  const json& layers = config.is_object() && config.contains("layers") ? config["layers"] : config;
  if (!layers.is_array()) return;
  std::map<std::string, std::vector<const json*>> by_class;
  for (const json& l : layers)
    if (l.is_object() && l.contains("class_name") && l["class_name"].is_string() && l.contains("config") &&
        l["config"].is_object())
      by_class[l["class_name"].get<std::string>()].push_back(&l["config"]);

  const config_writer writer("", model, list);
  std::map<std::string, std::size_t> met;
  for (const int number : list.order) {
    const layer& l = list[number];
    const std::size_t index = met[l.class_name]++;
    const auto theirs = by_class.find(l.class_name);
    if (l.slots.empty() || theirs == by_class.end() || index >= theirs->second.size()) continue;
    const json& saved = *theirs->second[index];
    for (const char* option : options) {
      const std::string ours = writer.option_of(number, option);
      const std::string there = saved.contains(option) ? option_text(saved[option]) : "";
      if (!ours.empty() && !there.empty() && ours != there)
        differences.add(l.name, detail::text_of({"the file has ", option, ' ', there, ", the network ", ours}));
    }
  }
}

}  // namespace strata::keras
