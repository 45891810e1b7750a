// Definitions of loop.hpp.
#pragma once

namespace strata::stablehlo::detail {

STRATA_FUNCTION module_text in_a_loop(const module_text& one, int steps, const std::string& attributes) {
  const auto stays = [](const argument& a) { return a.what == role::parameter || a.what == role::slot; };
  const auto for_each_step = [&](tensor_type t) {
    t.extents.insert(t.extents.begin(), steps);
    return t;
  };
  module_text all{.text = {}, .arguments = one.arguments, .results = one.results, .replicas = one.replicas};
  for (std::vector<argument>* list : {&all.arguments, &all.results})
    for (argument& a : *list)
      if (!stays(a)) a.type = for_each_step(a.type);

  // The values that the loop carries: the index of the step, the arguments, and the results that are not state.
  const std::size_t arguments = one.arguments.size(), results = one.results.size();
  std::vector<std::size_t> carried(results);  // of each result
  std::size_t others = 0;
  for (std::size_t k = 0; k < results; ++k)
    if (!stays(one.results[k])) carried[k] = 1 + arguments + others++;
  for (std::size_t i = 0; i < arguments; ++i)
    if (one.arguments[i].donated_to >= 0) carried[std::size_t(one.arguments[i].donated_to)] = 1 + i;
  for (std::size_t k = 0; k < results; ++k)
    if (const argument& r = one.results[k]; carried[k] == 0) {
      const std::string slot = r.what == role::slot ? text_of({"slot ", r.arena, " of "}) : "";
      throw_error({"a module of ", steps, " steps: no argument is donated to the result ", slot, "parameter ", r.index});
    }

  const std::string index = "tensor<i32>";
  const auto comma = [](std::string& list) -> std::string& { return list.empty() ? list : list += ", "; };
  const auto constant = [](const std::string& name, double value, const tensor_type& type) {
    return text_of({"  ", name, " = \"stablehlo.constant\"() {value = dense<", number_text(value, type.of), "> : ", type.text(),
                    "} : () -> ", type.text(), '\n'});
  };
  const tensor_type scalar{element::i32, {}};
  std::string parameters, types = index, block = "%i: " + index, begin = "%first", head, body, call, call_types, results_types;
  for (std::size_t i = 0; i < arguments; ++i) {
    const argument& a = all.arguments[i];
    const std::string type = a.type.text();
    comma(parameters) += text_of({"%a", i, ": ", type});
    if (a.donated_to >= 0) parameters += text_of({" {tf.aliasing_output = ", a.donated_to, " : i32}"});
    types += ", " + type;
    block += text_of({", %b", i, ": ", type});
    begin += text_of({", %a", i});
    comma(call_types) += one.arguments[i].type.text();
    if (stays(a)) {
      comma(call) += text_of({"%b", i});
      continue;
    }
    tensor_type slice = a.type;
    slice.extents[0] = 1;
    std::string offsets = "%i", offset_types = index, sizes = "1";
    for (std::size_t d = 1; d < slice.extents.size(); ++d) {
      offsets += ", %zero", offset_types += ", " + index;
      sizes += text_of({", ", long(slice.extents[d])});
    }
    body += text_of({"  %s", i, " = \"stablehlo.dynamic_slice\"(%b", i, ", ", offsets, ") {slice_sizes = array<i64: ", sizes,
                     ">} : (", type, ", ", offset_types, ") -> ", slice.text(), '\n'});
    body += text_of(
        {"  %c", i, " = \"stablehlo.reshape\"(%s", i, ") : (", slice.text(), ") -> ", one.arguments[i].type.text(), '\n'});
    comma(call) += text_of({"%c", i});
  }
  for (std::size_t k = 0; k < results; ++k) comma(results_types) += one.results[k].type.text();
  body += text_of({"  %r", results > 1 ? text_of({":", results}) : "", " = \"func.call\"(", call, ") {callee = @one_step} : (",
                   call_types, ") -> (", results_types, ")\n"});

  std::vector<std::string> next(1 + arguments + others);
  next[0] = "%next";
  for (std::size_t i = 0; i < arguments; ++i) next[1 + i] = text_of({"%b", i});
  std::string returned, returned_types;
  for (std::size_t k = 0; k < results; ++k) {
    const std::string result = results > 1 ? text_of({"%r#", k}) : "%r", type = all.results[k].type.text();
    comma(returned) += text_of({"%all#", carried[k]});
    comma(returned_types) += type;
    if (stays(one.results[k])) {
      next[carried[k]] = result;
      continue;
    }
    head += constant(text_of({"%empty", k}), 0, all.results[k].type);
    begin += text_of({", %empty", k});
    types += ", " + type;
    block += text_of({", %e", k, ": ", type});
    tensor_type slice = all.results[k].type;
    slice.extents[0] = 1;
    std::string offsets = "%i", offset_types = index;
    for (std::size_t d = 1; d < slice.extents.size(); ++d) offsets += ", %zero", offset_types += ", " + index;
    body += text_of(
        {"  %t", k, " = \"stablehlo.reshape\"(", result, ") : (", one.results[k].type.text(), ") -> ", slice.text(), '\n'});
    body += text_of({"  %u", k, " = \"stablehlo.dynamic_update_slice\"(%e", k, ", %t", k, ", ", offsets, ") : (", type, ", ",
                     slice.text(), ", ", offset_types, ") -> ", type, '\n'});
    next[carried[k]] = text_of({"%u", k});
  }
  std::string after;
  for (const std::string& n : next) comma(after) += n;

  all.text =
      text_of({"module @steps attributes {",
               attributes,
               "} {\n",
               one.text,
               "func.func public @main(",
               parameters,
               ") -> (",
               returned_types,
               ") {\n",
               constant("%first", 0, scalar),
               head,
               "  %all:",
               next.size(),
               " = \"stablehlo.while\"(",
               begin,
               ") ({\n  ^bb0(",
               block,
               "):\n",
               constant("%count", steps, scalar),
               "  %goes_on = \"stablehlo.compare\"(%i, %count) {comparison_direction = #stablehlo<comparison_direction LT>} "
               ": (tensor<i32>, tensor<i32>) -> tensor<i1>\n",
               "  \"stablehlo.return\"(%goes_on) : (tensor<i1>) -> ()\n  }, {\n  ^bb0(",
               block,
               "):\n",
               constant("%zero", 0, scalar),
               constant("%one", 1, scalar),
               body,
               "  %next = \"stablehlo.add\"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>\n",
               "  \"stablehlo.return\"(",
               after,
               ") : (",
               types,
               ") -> ()\n  }) : (",
               types,
               ") -> (",
               types,
               ")\n",
               "  \"func.return\"(",
               returned,
               ") : (",
               returned_types,
               ") -> ()\n}\n}\n"});
  return all;
}

}  // namespace strata::stablehlo::detail
