// Definitions of graph.hpp.
#pragma once
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

namespace strata::stablehlo {

namespace detail {
/// `1, 2, 3`
STRATA_FUNCTION std::string list_text(std::span<const std::int64_t> numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size(); ++i) out += text_of({i > 0 ? ", " : "", long(numbers[i])});
  return out;
}
/// `array<i64: 1, 2, 3>`
STRATA_FUNCTION std::string array_text(std::span<const std::int64_t> numbers) {
  return numbers.empty() ? "array<i64>" : "array<i64: " + list_text(numbers) + ">";
}
/// `dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>`
STRATA_FUNCTION std::string pairs_text(std::span<const std::int64_t> first, std::span<const std::int64_t> second) {
  std::string out = "dense<[";
  for (std::size_t i = 0; i < first.size(); ++i)
    out += text_of({i > 0 ? ", [" : "[", long(first[i]), ", ", long(second[i]), "]"});
  return out + text_of({"]> : tensor<", first.size(), "x2xi64>"});
}
STRATA_FUNCTION std::string types_text(std::span<const tensor_type> types) {
  std::string out = "(";
  for (std::size_t i = 0; i < types.size(); ++i) out += (i > 0 ? ", " : "") + types[i].text();
  return out + ")";
}
/// The body of a reduction: the operation `name` on two scalars.
STRATA_FUNCTION std::string body_of(const char* name, element of) {
  const std::string t = tensor_type{of, {}}.text();
  return text_of({"({\n  ^bb0(%l: ", t, ", %r: ", t, "):\n    %s = \"stablehlo.", name, "\"(%l, %r) : (", t, ", ", t, ") -> ", t,
                  "\n    \"stablehlo.return\"(%s) : (", t, ") -> ()\n  })"});
}
STRATA_FUNCTION const char* name_of(reduction how) {
  return how == reduction::add ? "add" : how == reduction::maximum ? "maximum" : "minimum";
}
STRATA_FUNCTION tensor start_of(reduction how, graph& in, element of) {
  const double infinity = std::numeric_limits<double>::infinity();
  const bool is_integer = of != element::f32 && of != element::f64 && of != element::bf16;
  const double lowest = is_integer ? double(std::numeric_limits<std::int32_t>::min()) : -infinity;
  const double highest = is_integer ? double(std::numeric_limits<std::int32_t>::max()) : infinity;
  return in.constant(how == reduction::add ? 0 : how == reduction::maximum ? lowest : highest, {of, {}});
}
/// Broadcasts a scalar to the shape of the other operand.
STRATA_FUNCTION tensor spread_like(tensor a, tensor like) {
  return a.rank() == 0 && like.rank() > 0 ? broadcast(a, like.extents(), {}) : a;
}
STRATA_FUNCTION std::string precision_text(product_precision precision) {
  return precision == product_precision::as_operands
             ? ", precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"
             : ", precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]";
}
}  // namespace detail

STRATA_FUNCTION std::string number_text(double value, element of) {
  switch (of) {
    case element::i1:
      return value != 0 ? "true" : "false";
    case element::i32:
    case element::i64:
    case element::ui32:
    case element::ui64:
      return detail::text_of({static_cast<long long>(value)});
    default:
      break;
  }
  char text[40];
  if (of == element::f64 && !std::isfinite(value))
    return detail::formatted("0x%016llX", static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(value)));
  const float single = float(value);
  if (of == element::bf16 && !std::isfinite(single))
    return detail::formatted("0x%04X", unsigned(std::bit_cast<std::uint32_t>(single) >> 16));
  if (of == element::f32 && !std::isfinite(single)) return detail::formatted("0x%08X", std::bit_cast<std::uint32_t>(single));
  const auto end = of == element::f64 ? std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr
                                      : std::to_chars(text, text + sizeof text, single, std::chars_format::scientific).ptr;
  std::string out(text, end);
  if (out.find('.') == std::string::npos) out.insert(out.find('e'), ".0");
  if (out.ends_with("e+00")) out.resize(out.size() - 4);
  return out;
}

STRATA_FUNCTION tensor graph::argument(tensor_type type) {
  arguments_.push_back(int(values_.size()));
  values_.push_back({std::move(type), -1});
  return {*this, arguments_.back()};
}

STRATA_FUNCTION std::vector<tensor> graph::operation(const char* name, std::span<const tensor> operands,
                                                     std::span<const tensor_type> results, std::string attributes,
                                                     std::string region) {
  std::string key = name;
  std::vector<int> ids;
  for (const tensor t : operands) ids.push_back(t.id()), key += detail::text_of({' ', t.id()});
  key += attributes + region + detail::types_text(results);
  const auto [found, is_new] = known_.try_emplace(std::move(key), int(statements_.size()));
  if (is_new) {
    statements_.push_back(
        {name, std::move(ids), std::move(attributes), std::move(region), int(values_.size()), int(results.size())});
    for (const tensor_type& each : results) values_.push_back({each, found->second});
  }
  const statement& s = statements_[std::size_t(found->second)];
  std::vector<tensor> out;
  for (int i = 0; i < s.results; ++i) out.push_back({*this, s.first_result + i});
  return out;
}
STRATA_FUNCTION tensor graph::operation(const char* name, std::initializer_list<tensor> operands, tensor_type result,
                                        std::string attributes, std::string region) {
  return operation(name, std::span<const tensor>(operands.begin(), operands.size()), std::span<const tensor_type>(&result, 1),
                   std::move(attributes), std::move(region))[0];
}
STRATA_FUNCTION tensor graph::constant(const std::string& written, tensor_type type) {
  return operation("constant", {}, type, detail::text_of({"value = dense<", written, "> : ", type.text()}));
}
STRATA_FUNCTION tensor graph::constant(double number, tensor_type type) {
  return constant(number_text(number, type.of), std::move(type));
}

STRATA_FUNCTION std::string graph::text(std::span<const tensor> results, std::span<const int> donated,
                                        const std::string& head) const {
  return "module @step attributes {" + head + "} {\n" + function("public @main", results, donated) + "}\n";
}
STRATA_FUNCTION std::string graph::function(const std::string& name_of_function, std::span<const tensor> results,
                                            std::span<const int> donated) const {
  std::vector<bool> lives(statements_.size());
  std::vector<int> open;
  for (const tensor t : results) open.push_back(t.id());
  while (!open.empty()) {
    const int s = values_[std::size_t(open.back())].statement;
    open.pop_back();
    if (s < 0 || lives[std::size_t(s)]) continue;
    lives[std::size_t(s)] = true;
    for (const int id : statements_[std::size_t(s)].operands) open.push_back(id);
  }
  // Values are named in the order in which they are written.
  std::vector<std::string> name(values_.size());
  std::string out = "func.func " + name_of_function + "(";
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const auto id = std::size_t(arguments_[i]);
    name[id] = detail::text_of({"%a", i});
    out += (i > 0 ? ", " : "") + name[id] + ": " + values_[id].type.text();
    if (donated[i] >= 0) out += detail::text_of({" {tf.aliasing_output = ", donated[i], " : i32}"});
  }
  const auto type_of = [&](int id) { return values_[std::size_t(id)].type.text(); };
  std::string names, types;
  for (const tensor t : results) types += (types.empty() ? "" : ", ") + type_of(t.id());
  out += ") -> (" + types + ") {\n";
  int written = 0;
  for (std::size_t s = 0; s < statements_.size(); ++s) {
    if (!lives[s]) continue;
    const statement& it = statements_[s];
    const std::string number = detail::text_of({"%", written++});
    for (int k = 0; k < it.results; ++k)
      name[std::size_t(it.first_result + k)] = it.results == 1 ? number : number + detail::text_of({"#", k});
    out += "  " + number;
    if (it.results > 1) out += detail::text_of({":", it.results});
    const bool has_dialect = std::string_view(it.name).find('.') != std::string_view::npos;
    out += detail::text_of({" = \"", has_dialect ? "" : "stablehlo.", it.name, "\"("});
    std::string operands;
    for (std::size_t k = 0; k < it.operands.size(); ++k) {
      out += (k > 0 ? ", " : "") + name[std::size_t(it.operands[k])];
      operands += (k > 0 ? ", " : "") + type_of(it.operands[k]);
    }
    out += ")";
    if (!it.region.empty()) out += " " + it.region;
    if (!it.attributes.empty()) out += " {" + it.attributes + "}";
    out += " : (" + operands + ") -> ";
    if (it.results > 1) out += "(";
    for (int k = 0; k < it.results; ++k) out += (k > 0 ? ", " : "") + type_of(it.first_result + k);
    out += it.results > 1 ? ")\n" : "\n";
  }
  for (const tensor t : results) names += (names.empty() ? "" : ", ") + name[std::size_t(t.id())];
  return out + "  \"func.return\"(" + names + ") : (" + types + ") -> ()\n}\n";
}

STRATA_FUNCTION tensor binary(const char* name, tensor a, tensor b) {
  a = detail::spread_like(a, b), b = detail::spread_like(b, a);
  return a.in().operation(name, {a, b}, a.type());
}
STRATA_FUNCTION tensor unary(const char* name, tensor a) { return a.in().operation(name, {a}, a.type()); }
STRATA_FUNCTION tensor operator+(tensor a, tensor b) { return binary("add", a, b); }
STRATA_FUNCTION tensor operator-(tensor a, tensor b) { return binary("subtract", a, b); }
STRATA_FUNCTION tensor operator*(tensor a, tensor b) { return binary("multiply", a, b); }
STRATA_FUNCTION tensor operator/(tensor a, tensor b) { return binary("divide", a, b); }
STRATA_FUNCTION tensor operator+(tensor a, double b) { return a + filled(b, a); }
STRATA_FUNCTION tensor operator-(tensor a, double b) { return a - filled(b, a); }
STRATA_FUNCTION tensor operator*(tensor a, double b) { return a * filled(b, a); }
STRATA_FUNCTION tensor operator/(tensor a, double b) { return a / filled(b, a); }
STRATA_FUNCTION tensor operator-(tensor a) { return unary("negate", a); }
STRATA_FUNCTION tensor compare(const char* direction, tensor a, tensor b) {
  a = detail::spread_like(a, b), b = detail::spread_like(b, a);
  return a.in().operation("compare", {a, b}, {element::i1, a.extents()},
                          detail::text_of({"comparison_direction = #stablehlo<comparison_direction ", direction, ">"}));
}
STRATA_FUNCTION tensor select(tensor condition, tensor yes, tensor no) {
  if (yes == no) return yes;
  yes = detail::spread_like(yes, no), no = detail::spread_like(no, yes);
  yes = detail::spread_like(yes, condition), no = detail::spread_like(no, condition);
  return yes.in().operation("select", {detail::spread_like(condition, yes), yes, no}, yes.type());
}
STRATA_FUNCTION tensor convert(tensor a, element to) {
  return a.type().of == to ? a : a.in().operation("convert", {a}, {to, a.extents()});
}
STRATA_FUNCTION tensor filled(double value, tensor like) { return like.in().constant(value, like.type()); }

STRATA_FUNCTION tensor reshape(tensor a, const extents& to) {
  return a.extents() == to ? a : a.in().operation("reshape", {a}, {a.type().of, to});
}
STRATA_FUNCTION tensor broadcast(tensor a, const extents& to, std::initializer_list<std::int64_t> axes) {
  return a.in().operation("broadcast_in_dim", {a}, {a.type().of, to},
                          "broadcast_dimensions = " + detail::array_text({axes.begin(), axes.size()}));
}
STRATA_FUNCTION tensor broadcast(tensor a, const extents& to) {
  extents axes;
  for (int i = 0; i < a.rank(); ++i) axes.push_back(i);
  return a.in().operation("broadcast_in_dim", {a}, {a.type().of, to}, "broadcast_dimensions = " + detail::array_text(axes));
}
STRATA_FUNCTION tensor along_last_axis(tensor a, tensor like) { return broadcast(a, like.extents(), {like.rank() - 1}); }
STRATA_FUNCTION tensor along_first_axes(tensor a, tensor like) {
  return a.rank() == like.rank() ? a : broadcast(a, like.extents());
}
STRATA_FUNCTION tensor transpose(tensor a, std::initializer_list<std::int64_t> axes) {
  extents to;
  for (const std::int64_t axis : axes) to.push_back(a.extent(int(axis)));
  return a.in().operation("transpose", {a}, {a.type().of, to},
                          "permutation = " + detail::array_text({axes.begin(), axes.size()}));
}
STRATA_FUNCTION tensor reverse(tensor a, std::initializer_list<std::int64_t> axes) {
  return a.in().operation("reverse", {a}, a.type(), "dimensions = " + detail::array_text({axes.begin(), axes.size()}));
}
STRATA_FUNCTION tensor slice(tensor a, const extents& begin, const extents& end, extents steps) {
  steps.resize(begin.size(), 1);
  extents to;
  for (std::size_t i = 0; i < begin.size(); ++i) to.push_back((end[i] - begin[i] + steps[i] - 1) / steps[i]);
  if (to == a.extents()) return a;
  return a.in().operation("slice", {a}, {a.type().of, to},
                          detail::text_of({"start_indices = ", detail::array_text(begin), ", limit_indices = ",
                                           detail::array_text(end), ", strides = ", detail::array_text(steps)}));
}
STRATA_FUNCTION tensor pad(tensor a, const extents& low, const extents& high, const extents& inner) {
  extents to;
  for (std::size_t i = 0; i < low.size(); ++i)
    to.push_back(low[i] + high[i] + a.extents()[i] + std::max<std::int64_t>(a.extents()[i] - 1, 0) * inner[i]);
  const auto is_zero = [](const extents& e) { return std::all_of(e.begin(), e.end(), [](std::int64_t n) { return n == 0; }); };
  if (is_zero(low) && is_zero(high) && is_zero(inner)) return a;
  const tensor zero = a.in().constant(0, {a.type().of, {}});
  return a.in().operation("pad", {a, zero}, {a.type().of, to},
                          detail::text_of({"edge_padding_low = ", detail::array_text(low), ", edge_padding_high = ",
                                           detail::array_text(high), ", interior_padding = ", detail::array_text(inner)}));
}
STRATA_FUNCTION tensor concatenate(std::span<const tensor> parts, int axis) {
  if (parts.size() == 1) return parts[0];
  tensor_type to = parts[0].type();
  to.extents[std::size_t(axis)] = 0;
  for (const tensor t : parts) to.extents[std::size_t(axis)] += t.extent(axis);
  return parts[0].in().operation("concatenate", parts, std::span<const tensor_type>(&to, 1),
                                 detail::text_of({"dimension = ", axis, " : i64"}))[0];
}
STRATA_FUNCTION tensor iota(graph& in, tensor_type type, int axis) {
  return in.operation("iota", {}, std::move(type), detail::text_of({"iota_dimension = ", axis, " : i64"}));
}

STRATA_FUNCTION tensor reduce(reduction how, tensor a, const extents& axes) {
  if (axes.empty()) return a;
  extents to;
  for (int i = 0; i < a.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) to.push_back(a.extent(i));
  return a.in().operation("reduce", {a, detail::start_of(how, a.in(), a.type().of)}, {a.type().of, to},
                          "dimensions = " + detail::array_text(axes), detail::body_of(detail::name_of(how), a.type().of));
}
STRATA_FUNCTION tensor sum_of_rows(tensor a) {
  extents axes;
  for (int i = 1; i < a.rank(); ++i) axes.push_back(i);
  return reduce(reduction::add, a, axes);
}
STRATA_FUNCTION tensor sum_per_channel(tensor a) {
  extents axes;
  for (int i = 0; i + 1 < a.rank(); ++i) axes.push_back(i);
  return reduce(reduction::add, a, axes);
}
STRATA_FUNCTION tensor sum(tensor a) {
  extents axes;
  for (int i = 0; i < a.rank(); ++i) axes.push_back(i);
  return reduce(reduction::add, a, axes);
}

STRATA_FUNCTION tensor reduce_window(reduction how, tensor a, const window_2d& w) {
  extents to = a.extents();
  for (std::size_t i = 0; i < 2; ++i) to[i + 1] = (to[i + 1] + w.low[i] + w.high[i] - w.size[i]) / w.stride[i] + 1;
  const std::int64_t size[] = {1, w.size[0], w.size[1], 1}, stride[] = {1, w.stride[0], w.stride[1], 1},
                     low[] = {0, w.low[0], w.low[1], 0}, high[] = {0, w.high[0], w.high[1], 0};
  return a.in().operation("reduce_window", {a, detail::start_of(how, a.in(), a.type().of)}, {a.type().of, to},
                          detail::text_of({"window_dimensions = ", detail::array_text(size), ", window_strides = ",
                                           detail::array_text(stride), ", padding = ", detail::pairs_text(low, high)}),
                          detail::body_of(detail::name_of(how), a.type().of));
}
STRATA_FUNCTION tensor select_and_scatter(tensor a, tensor source, const window_2d& w) {
  const std::int64_t size[] = {1, w.size[0], w.size[1], 1}, stride[] = {1, w.stride[0], w.stride[1], 1},
                     low[] = {0, w.low[0], w.low[1], 0}, high[] = {0, w.high[0], w.high[1], 0};
  const std::string t = tensor_type{a.type().of, {}}.text();
  const std::string bodies = detail::text_of({"({\n  ^bb0(%l: ",
                                              t,
                                              ", %r: ",
                                              t,
                                              "):\n    %s = \"stablehlo.compare\"(%l, %r) {comparison_direction = ",
                                              "#stablehlo<comparison_direction GE>} : (",
                                              t,
                                              ", ",
                                              t,
                                              ") -> tensor<i1>\n    \"stablehlo.return\"(%s) : (tensor<i1>) -> ()\n  }, {\n",
                                              "  ^bb0(%l: ",
                                              t,
                                              ", %r: ",
                                              t,
                                              "):\n    %s = \"stablehlo.add\"(%l, %r) : (",
                                              t,
                                              ", ",
                                              t,
                                              ") -> ",
                                              t,
                                              "\n    \"stablehlo.return\"(%s) : (",
                                              t,
                                              ") -> ()\n  })"});
  return a.in().operation("select_and_scatter", {a, source, a.in().constant(0, {a.type().of, {}})}, a.type(),
                          detail::text_of({"window_dimensions = ", detail::array_text(size), ", window_strides = ",
                                           detail::array_text(stride), ", padding = ", detail::pairs_text(low, high)}),
                          bodies);
}

STRATA_FUNCTION tensor dot_general(tensor a, tensor b, int of_a, int of_b, element of, product_precision precision) {
  extents to;
  for (int i = 0; i < a.rank(); ++i)
    if (i != of_a) to.push_back(a.extent(i));
  for (int i = 0; i < b.rank(); ++i)
    if (i != of_b) to.push_back(b.extent(i));
  return a.in().operation("dot_general", {a, b}, {of, to},
                          detail::text_of({"dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [", of_a,
                                           "], rhs_contracting_dimensions = [", of_b, "]>", detail::precision_text(precision)}));
}
STRATA_FUNCTION tensor convolve(tensor a, tensor b, const char* layout, const window_2d& w, std::int64_t feature_groups,
                                std::int64_t batch_groups, const extents& to, element of, product_precision precision) {
  return a.in().operation(
      "convolution", {a, b}, {of, to},
      detail::text_of(
          {"batch_group_count = ", long(batch_groups), " : i64, dimension_numbers = #stablehlo.conv<", layout,
           ">, feature_group_count = ", long(feature_groups), " : i64, lhs_dilation = ", detail::array_text(w.input_dilation),
           ", padding = ", detail::pairs_text(w.low, w.high), ", rhs_dilation = ", detail::array_text(w.window_dilation),
           ", window_strides = ", detail::array_text(w.stride), detail::precision_text(precision)}));
}

STRATA_FUNCTION tensor gather_rows(tensor table, tensor indices) {
  return table.in().operation(
      "gather", {table, indices}, {table.type().of, {indices.extent(0), table.extent(1)}},
      detail::text_of({"dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = ",
                       "[0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, ",
                       long(table.extent(1)), ">"}));
}
STRATA_FUNCTION tensor scatter_add_rows(tensor_type table, tensor indices, tensor rows) {
  graph& in = rows.in();
  const tensor zeros = in.constant(0, table);
  return in.operation("scatter", {zeros, indices, rows}, table,
                      "indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "
                      "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = "
                      "false",
                      detail::body_of("add", table.of));
}

STRATA_FUNCTION std::vector<tensor> all_reduce(std::span<const tensor> parts, int replicas) {
  if (replicas == 1 || parts.empty()) return {parts.begin(), parts.end()};
  // The operands of one all_reduce have the same element type.
  const auto other = std::ranges::find_if(parts, [&](tensor t) { return t.type().of != parts[0].type().of; });
  if (other != parts.end()) {
    const auto first = std::size_t(other - parts.begin());
    std::vector<tensor> sums = all_reduce(parts.first(first), replicas);
    const std::vector<tensor> others = all_reduce(parts.subspan(first), replicas);
    sums.insert(sums.end(), others.begin(), others.end());
    return sums;
  }
  std::vector<tensor_type> types;
  for (const tensor t : parts) types.push_back(t.type());
  extents all;
  for (int r = 0; r < replicas; ++r) all.push_back(r);
  return parts[0].in().operation(
      "all_reduce", parts, types,
      detail::text_of({"replica_groups = dense<[[", detail::list_text(all), "]]> : tensor<1x", replicas, "xi64>"}),
      detail::body_of("add", types[0].of));
}

}  // namespace strata::stablehlo
