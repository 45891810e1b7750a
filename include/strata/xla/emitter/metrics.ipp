// Definitions of metrics.hpp.
#pragma once

namespace strata::stablehlo::detail {

STRATA_FUNCTION tensor pairs_of(tensor numbers) {
  const std::int64_t n = numbers.extent(0);
  if (n % 2 != 0) numbers = pad(numbers, {0}, {1}, {0});
  return reshape(numbers, {(n + 1) / 2, 2});
}
STRATA_FUNCTION tensor pairs_of_scalars(std::span<const tensor> numbers) {
  std::vector<tensor> parts;
  for (const tensor t : numbers) parts.push_back(reshape(t, {1}));
  return pairs_of(concatenate(parts, 0));
}
STRATA_FUNCTION tensor mean_over_samples(const metric_call& c, tensor of_row) {
  const tensor both[] = {sum(c.step.only_samples(convert(of_row, c.step.number))), c.step.sample_count()};
  return pairs_of_scalars(both);
}

STRATA_FUNCTION tensor true_label(const metric_call& c) { return c.labels ? c.labels : position_of_largest(as_rows(c.targets)); }
/// Tests each row for a nan prediction: (rows) of i1. A maximum would not show it, because some plugins ignore nan.
STRATA_FUNCTION tensor has_nan(tensor p) {
  const tensor nans = reduce(reduction::add, convert(compare("NE", p, p), element::i32), {1});
  return compare("GT", nans, filled(0, nans));
}
STRATA_FUNCTION tensor right_class(const metric_call& c, tensor label) {
  const tensor p = as_rows(c.predictions);
  return binary("and", compare("EQ", position_of_largest(p), label), unary("not", has_nan(p)));
}
STRATA_FUNCTION tensor truth_of_elements(const metric_call& c) {
  if (!c.labels) return as_rows(c.targets);
  const std::int64_t n = size_of_row(c.predictions);
  if (n == 1) return reshape(convert(c.labels, c.step.number), {c.labels.extent(0), 1});
  return one_hot(c.labels, n, c.step.number);
}
STRATA_FUNCTION tensor right_side(const metric_call& c, double threshold) {
  const tensor p = as_rows(c.predictions), above = convert(compare("GT", p, filled(threshold, p)), c.step.number);
  const tensor is_right = convert(compare("EQ", select(compare("EQ", p, p), above, p), truth_of_elements(c)), c.step.number);
  return sum_of_rows(is_right) / double(p.extent(1));
}
STRATA_FUNCTION tensor among_largest(const metric_call& c, tensor label, int k) {
  const tensor p = as_rows(c.predictions), zero = filled(0, p);
  const tensor own = sum_of_rows(select(compare("NE", one_hot(label, p.extent(1), c.step.number), zero), p, zero));
  const tensor beats = compare("GT", p, along_first_axes(own, p)), is_finite = compare("EQ", own - own, filled(0, own));
  const tensor larger = sum_of_rows(convert(beats, c.step.number)),
               is_number = binary("and", is_finite, unary("not", has_nan(p)));
  return binary("and", is_number, compare("LT", larger, filled(k, larger)));
}

/// Among the k largest of a row, of equal ones the first and nan before all: (rows, n) of i1.
STRATA_FUNCTION tensor is_among_largest(tensor p, int k) {
  const extents cube{p.extent(0), p.extent(1), p.extent(1)};
  const tensor own = broadcast(p, cube, {0, 1}), other = broadcast(p, cube, {0, 2});
  const tensor_type index{element::i32, cube};
  const tensor is_before = compare("LT", iota(p.in(), index, 2), iota(p.in(), index, 1));
  const tensor beats = binary("or", unary("not", compare("LE", other, own)), binary("and", compare("EQ", other, own), is_before));
  const tensor better = reduce(reduction::add, convert(beats, element::i32), {2});
  return compare("LT", better, filled(k, better));
}
STRATA_FUNCTION yes_or_no::yes_or_no(const metric_call& c, const confusion_settings& s) {
  const tensor p = as_rows(c.predictions);
  predicted = compare("GT", p, filled(s.limit(), p));
  if (s.top_k > 0) predicted = binary("and", predicted, is_among_largest(p, s.top_k));
  const tensor truth = truth_of_elements(c);
  is_true = compare("NE", truth, filled(0, truth));
  if (s.class_id >= 0) {
    const extents begin{0, s.class_id}, end{p.extent(0), s.class_id + 1};
    predicted = slice(predicted, begin, end), is_true = slice(is_true, begin, end);
  }
}
STRATA_FUNCTION tensor yes_or_no::count(const metric_call& c, detail::confusion what) const {
  using detail::confusion;
  const bool yes = what == confusion::true_positive || what == confusion::false_positive;
  const bool truth = what == confusion::true_positive || what == confusion::false_negative;
  const tensor is = binary("and", yes ? predicted : unary("not", predicted), truth ? is_true : unary("not", is_true));
  return sum(c.step.only_samples(convert(is, c.step.number)));
}

STRATA_FUNCTION tensor histogram_of_auc(const metric_call& c, int thresholds, bool from_logits) {
  tensor p = as_rows(c.predictions);
  if (from_logits) p = filled(1, p) / (unary("exponential", -p) + 1);
  const double last = thresholds - 1;
  const tensor above = unary("ceil", p * last) - 1, zero = filled(0, p), most = filled(last, p);
  // Comparisons are false for nan, which is in interval 0.
  const tensor inside = select(compare("LT", above, most), above, most);
  const tensor interval = convert(select(compare("GT", above, zero), inside, zero), element::i32);
  const tensor truth = truth_of_elements(c), of_one = c.step.only_samples(convert(compare("NE", truth, zero), c.step.number));
  const tensor of_zero = c.step.only_samples(convert(compare("EQ", truth, zero), c.step.number));
  const std::int64_t n = p.type().size();
  const tensor where = one_hot(reshape(interval, {n}), thresholds, c.step.number);
  const tensor kinds[] = {reshape(of_one, {1, n}), reshape(of_zero, {1, n})};
  const tensor counts = dot_general(concatenate(kinds, 0), where, 1, 0, c.step.number, product_precision::as_operands);
  return reshape(counts, {thresholds, 2});  // row after row, two by two: sums are a flat list
}

STRATA_FUNCTION tensor counts_of_f1(const metric_call& c, const f1_settings& s) {
  const tensor p = as_rows(c.predictions), truth = truth_of_elements(c), is = compare("NE", truth, filled(0, truth));
  const tensor of_row = reduce(reduction::maximum, p, {1});
  const tensor largest = along_first_axes(select(has_nan(p), filled(std::nan(""), of_row), of_row), p);
  const tensor yes = s.has_threshold ? compare("GT", p, filled(s.threshold.value(), p))
                                     : binary("and", compare("GE", p, largest), compare("GT", unary("abs", p), filled(1e-9, p)));
  std::vector<tensor> columns;
  for (const tensor kind : {binary("and", yes, is), binary("and", yes, unary("not", is)), binary("and", unary("not", yes), is)})
    columns.push_back(reshape(sum_per_channel(c.step.only_samples(convert(kind, c.step.number))), {p.extent(1), 1}));
  return pairs_of(reshape(concatenate(columns, 1), {3 * p.extent(1)}));
}

STRATA_FUNCTION tensor counts_of_classes(const metric_call& c, double threshold) {
  const tensor p = as_rows(c.predictions);
  const bool one_output = p.extent(1) == 1;
  const std::int64_t classes = one_output ? 2 : p.extent(1), rows = p.extent(0);
  tensor predicted =
      one_output ? reshape(convert(compare("GT", p, filled(threshold, p)), element::i32), {rows}) : position_of_largest(p);
  predicted = select(has_nan(p), filled(-1, predicted), predicted);
  tensor label = c.labels;
  if (!label) {
    const tensor t = as_rows(c.targets);
    label = one_output ? reshape(convert(compare("GT", t, filled(0.5, t)), element::i32), {rows}) : position_of_largest(t);
  }
  const tensor is = c.step.only_samples(one_hot(label, classes, c.step.number));
  const tensor counts =
      dot_general(is, one_hot(predicted, classes, c.step.number), 0, 0, c.step.number, product_precision::as_operands);
  return pairs_of(reshape(counts, {classes * classes}));
}

STRATA_FUNCTION tensor sums_of_r2(const metric_call& c) {
  // The host subtracts these sums from each other, so they are those of r2_score::add: in float nothing would be left where the
  // mean is large.
  const tensor p = convert(as_rows(c.predictions), element::f64), t = convert(as_rows(c.targets), element::f64), error = p - t;
  const auto upper_half = [](tensor x) {
    const tensor far = x * 134217729.;
    return far - (far - x);
  };
  const tensor upper = upper_half(t), lower = t - upper, square = upper * upper, upper_square = upper_half(square);
  std::vector<tensor> columns;
  for (const tensor each : {upper, lower, upper_square, (square - upper_square) + (upper + t) * lower, error * error})
    columns.push_back(reshape(sum_per_channel(c.step.only_samples(each)), {p.extent(1), 1}));
  const tensor parts[] = {reshape(convert(c.step.sample_count(), element::f64), {1}),
                          reshape(concatenate(columns, 1), {5 * p.extent(1)})};
  return pairs_of(concatenate(parts, 0));
}
STRATA_FUNCTION tensor sums_of_squares(const metric_call& c) {
  const tensor p = as_rows(c.predictions), error = p - as_rows(c.targets);
  const tensor both[] = {sum(c.step.only_samples(error * error)), c.step.sample_count() * double(p.extent(1))};
  return pairs_of_scalars(both);
}

}  // namespace strata::stablehlo::detail
