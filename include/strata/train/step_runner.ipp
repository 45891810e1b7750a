// Definitions of step_runner.hpp.
#pragma once

namespace strata::detail {

STRATA_FUNCTION std::size_t pairs_of(std::span<const reported_metric> metrics) {
  std::size_t pairs = 0;
  for (const reported_metric& m : metrics) pairs += m.pairs();
  return pairs;
}

STRATA_FUNCTION void report(logs& to, std::span<const metric_sum> sums, std::span<const reported_metric> metrics,
                            const char* prefix) {
  for (const reported_metric& m : metrics) {
    const std::span<const metric_sum> own = sums.first(m.pairs());
    sums = sums.subspan(m.pairs());
    const std::string name = text_of({prefix, m.name()});
    if (!m.results) {
      to.set(name, own[0].mean());
      continue;
    }
    std::vector<double> numbers, values(std::max<std::size_t>(m.values, 1));
    for (const metric_sum& pair : own) numbers.push_back(pair.sum), numbers.push_back(pair.count);
    m.results(std::span(numbers).first(m.sums), values);
    if (m.values > 0)
      to.set_array(name, std::move(values));
    else
      to.set(name, values[0]);
  }
}

STRATA_FUNCTION logs expected_values(std::span<const reported_metric> metrics, bool validates) {
  logs names;
  for (const char* prefix : {"", "val_"})
    for (const reported_metric& m : metrics)
      if (m.values == 0 && (validates || *prefix == 0)) names.set(text_of({prefix, m.name()}), 0);
  return names;
}

}  // namespace strata::detail
