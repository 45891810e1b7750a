// Definitions of emission.hpp.
#pragma once

namespace strata::stablehlo {

STRATA_FUNCTION tensor step_facts::only_samples(tensor rows_of) const {
  return is_sample ? select(along_first_axes(is_sample, rows_of), rows_of, filled(0, rows_of)) : rows_of;
}

STRATA_FUNCTION tensor step_facts::if_any_sample(tensor of_replica) const {
  if (!is_sample) return of_replica;
  const tensor first = reshape(slice(is_sample, {0}, {1}), {});  // samples come before padding
  return select(first, of_replica, filled(0, of_replica));
}

STRATA_FUNCTION tensor step_facts::sample_count() const {
  return is_sample ? sum(convert(is_sample, number)) : in->constant(rows, {number, {}});
}

}  // namespace strata::stablehlo
