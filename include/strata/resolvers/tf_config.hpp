// tf_config: the environment variable TF_CONFIG describes the cluster.
#pragma once
#include <set>
#include <strata/base/json.hpp>
#include <strata/base/text.hpp>
#include <strata/resolvers/process_numbers.hpp>

namespace strata {

/// TF_CONFIG as TensorFlow documents it:
///
///     {"cluster": {"chief": ["a:2222"], "worker": ["b:2222", "c:2222"], "ps": ["d:2222"], "evaluator": ["e:2222"]},
///      "task": {"type": "worker", "index": 0}}
///
/// Without a chief, worker 0 is the chief. The evaluator may be left out of "cluster". Without "cluster" the process is the only
/// worker. Other top-level keys, such as "environment", are ignored. STRATA_RUN_ID names the run; left out, the addresses do.
/// Throws strata_error for any other content, and where a launcher that counts as many processes has given this one
/// another number. https://www.tensorflow.org/guide/distributed_training#TF_CONFIG
struct tf_config {
  core::environment_reader environment = core::process_environment;

  cluster operator()() const {
    return detail::resolved_by("TF_CONFIG", [&] {
      const cluster found(spec());
      detail::refuse_contradictions(number_in(found), detail::process_numbers(detail::variables(environment)));
      return found;
    });
  }

 private:
  using json = nlohmann::json;

  cluster_spec spec() const {
    const detail::variables variables(environment);
    const std::optional<std::string> text = variables.text("TF_CONFIG");
    if (!text)
      throw_error(R"(the variable is not set: set it to {"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker",)"
                  R"( "index": N}} in each process, or to {} to train alone)");
    cluster_spec spec = spec_of(parse(*text));
    spec.run_id = variables.text(detail::run_id_variable).value_or("");
    return spec;
  }

  /// The number among all members by TF_CONFIG. A launcher may number roles that do not train in another order.
  static detail::process_number number_in(const cluster& c) {
    int before = 0, members = 0;
    for (const role r : core::all_roles) {
      if (r < c.task().type) before += c.count(r);
      members += c.count(r);
    }
    return {"TF_CONFIG", detail::numbered_by::hand, before + c.task().index, members, members == c.size()};
  }

  static json parse(const std::string& text) {
    try {
      return detail::parse_json("the JSON", text, 100);
    } catch (const json::parse_error& e) {
      throw_error({"not JSON, as its character ", e.byte, " shows: ", text});
    } catch (const json::exception&) {
      throw_error({"not JSON: ", text});
    }
  }

  static std::string shown(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

  static cluster_spec spec_of(const json& config) {
    if (!config.is_object()) throw_error({shown(config), " is not an object with the keys 'cluster' and 'task'"});
    cluster_spec spec;
    if (!config.contains("cluster")) {
      refuse_misspelt_keys(config);
      spec.worker.emplace_back();
      if (config.contains("task") && task_of(config["task"]) != cluster_task{})
        throw_error({"'task' is ", to_string(task_of(config["task"])), ", but there is no 'cluster'"});
      return spec;
    }
    const json& members = config["cluster"];
    if (!members.is_object()) throw_error({"'cluster' is ", shown(members), ", not an object of address lists"});
    for (const auto& [name, addresses] : members.items()) spec[role_of(name, "'cluster'")] = addresses_of(name, addresses);
    if (!config.contains("task"))
      throw_error(R"('task' is missing: add "task": {"type": "worker", "index": N}, with another N in each process)");
    spec.task = task_of(config["task"]);
    return spec;
  }

  /// With "clusters" instead of "cluster" each process would train alone.
  static void refuse_misspelt_keys(const json& config) {
    static const std::set<std::string> known = {"task",      "environment", "rpc_layer", "session_master", "eval_session_master",
                                                "model_dir", "job",         "service"};
    for (const auto& [key, value] : config.items()) {
      if (!known.contains(key)) throw_error({"there is no 'cluster', but an unknown key '", key, "'"});
    }
  }

  static role role_of(const std::string& name, const std::string& where) {
    for (const role r : core::all_roles) {
      if (name == core::name_of(r)) return r;
    }
    throw_error({where, " names '", name, "', which is none of chief, worker, ps and evaluator"});
  }

  static cluster_spec::addresses addresses_of(const std::string& name, const json& list) {
    if (!list.is_array()) throw_error({"'", name, "' is ", shown(list), R"(, not a list such as ["host:port", ...])"});
    if (list.empty()) throw_error({"'", name, "' is an empty list: name a host:port, or leave '", name, "' out"});
    cluster_spec::addresses addresses;
    for (const json& entry : list) {
      const std::string which = detail::text_of({name, ' ', addresses.size()});
      if (!entry.is_string()) throw_error({which, " is ", shown(entry), R"(, not a string such as "host:port")"});
      try {
        addresses.emplace_back(core::parse_endpoint(entry.get<std::string>()));
      } catch (const strata_error& e) {
        throw_error({which, ": ", e.what()});
      }
    }
    return addresses;
  }

  static cluster_task task_of(const json& task) {
    if (!task.is_object()) throw_error({"'task' is ", shown(task), R"(, not an object such as {"type": "worker", "index": 0})"});
    if (!task.contains("type")) throw_error("'task' has no 'type': chief, worker, ps or evaluator");
    if (!task["type"].is_string())
      throw_error({"'type' of 'task' is ", shown(task["type"]), ", not a string such as \"worker\""});
    if (!task.contains("index")) throw_error("'task' has no 'index'");
    return {role_of(task["type"].get<std::string>(), "'type' of 'task'"), index_of(task["index"])};
  }

  /// Accepts a number in quotes, as TensorFlow does, because scripts often write one.
  static int index_of(const json& index) {
    const std::string text = index.is_string() ? index.get<std::string>() : index.is_number_integer() ? index.dump() : "";
    int number = -1;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc() || end != text.data() + text.size() || number < 0)
      throw_error({"'index' of 'task' is ", shown(index), ", not a number from 0"});
    return number;
  }
};

}  // namespace strata
