// Definitions of losses.hpp.
#pragma once

namespace strata::stablehlo {

namespace detail {

STRATA_FUNCTION std::int64_t size_of_row(tensor x) { return x.type().size() / x.extent(0); }

STRATA_FUNCTION tensor value_of_elements(tensor each, bool adds) {
  const tensor sum = sum_of_rows(each);
  return adds ? sum : sum / double(size_of_row(each));
}
STRATA_FUNCTION tensor gradient_of_elements(tensor each, bool adds) { return adds ? each : each / double(size_of_row(each)); }

STRATA_FUNCTION tensor smoothed(tensor targets, double amount) {
  return amount == 0 ? targets : targets * (1 - amount) + amount / double(targets.extent(1));
}

/// The parts of a crossentropy from shares x / sum x, which are clamped as in class_crossentropy.
struct clamped_shares {
  tensor sum, p, inside;  // inside: is not clamped
  explicit clamped_shares(tensor x) : sum(along_first_axes(sum_of_rows(x), x)), p(x / sum) {
    const tensor low = filled(detail::probability_bounds<double>::lowest, p),
                 high = filled(detail::probability_bounds<double>::highest, p);
    inside = binary("and", compare("GE", p, low), compare("LE", p, high));
    clamped = binary("minimum", binary("maximum", p, low), high);
  }
  tensor clamped;
};

STRATA_FUNCTION tensor value_of_classes(tensor x, tensor targets, bool from_logits) {
  const auto negative_log = [&] {
    if (!from_logits) return -unary("log", clamped_shares(x).clamped);
    const shifted_logits s(x);
    return along_first_axes(unary("log", s.sums), x) - s.shifted;
  }();
  const tensor zero = filled(0, x);
  return sum_of_rows(select(compare("NE", targets, zero), targets * negative_log, zero));
}
STRATA_FUNCTION tensor gradient_of_classes(tensor x, tensor targets, bool from_logits) {
  if (from_logits) return softmax_of(x) * along_first_axes(sum_of_rows(targets), x) - targets;
  const clamped_shares s(x);
  const tensor zero = filled(0, x), counts = binary("and", s.inside, compare("NE", targets, zero));
  const tensor active = sum_of_rows(select(counts, targets, zero));
  return (select(counts, -targets / s.p, zero) + along_first_axes(active, x)) / s.sum;
}

}  // namespace detail

namespace detail {
/// cosine_similarity: 1 / |x|, at most 1e7, and the products of a row.
struct cosine_parts {
  tensor dot, of_prediction, of_truth;
  explicit cosine_parts(const loss_call& c)
      : dot(sum_of_rows(c.x * c.targets)), of_prediction(inverse_norm(c.x)), of_truth(inverse_norm(c.targets)) {}
  static tensor inverse_norm(tensor x) {
    const tensor square = sum_of_rows(x * x), inverse = filled(1, square) / unary("sqrt", square), most = filled(1e7, square);
    return select(compare("GT", inverse, most), most, inverse);
  }
};
}  // namespace detail

STRATA_FUNCTION tensor loss_emission<cosine_similarity>::value(const loss_call& c) {
  const detail::cosine_parts p(c);
  return -p.dot * p.of_prediction * p.of_truth;
}
STRATA_FUNCTION tensor loss_emission<cosine_similarity>::gradient(const loss_call& c) {
  const detail::cosine_parts p(c);
  const tensor cube = p.of_prediction * p.of_prediction * p.of_prediction, zero = filled(0, p.dot);
  const tensor along = select(compare("LT", p.of_prediction, filled(1e7, p.dot)), p.dot * p.of_truth * cube, zero);
  return along_first_axes(along, c.x) * c.x - along_first_axes(p.of_prediction * p.of_truth, c.x) * c.targets;
}

namespace detail {
struct hinge_parts {
  tensor scores, missing;
  explicit hinge_parts(const loss_call& c)
      : scores((filled(1, c.x) - c.targets) * c.x),
        missing(reduce(reduction::maximum, scores, {1}) - sum_of_rows(c.targets * c.x) + 1) {}
};
}  // namespace detail

STRATA_FUNCTION tensor loss_emission<categorical_hinge>::value(const loss_call& c) {
  const tensor missing = detail::hinge_parts(c).missing, zero = filled(0, missing);
  return select(compare("LT", missing, zero), zero, missing);
}
STRATA_FUNCTION tensor loss_emission<categorical_hinge>::gradient(const loss_call& c) {
  const detail::hinge_parts h(c);
  const tensor misses = compare("GT", h.missing, filled(0, h.missing)), zero = filled(0, c.x);
  const tensor rival = one_hot(position_of_largest(h.scores), c.x.extent(1), c.x.type().of);
  return select(along_first_axes(misses, c.x), rival * (filled(1, c.x) - c.targets) - c.targets, zero);
}

}  // namespace strata::stablehlo
