// Stages that change which samples come, and in which order.
#pragma once
#include <optional>
#include <strata/base/standard_ranges.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/data/core/single_pass.hpp>
#include <utility>

namespace strata::data::detail {

/// The position of a stage in the view that it reads.
template <class V>
struct position {
  std::optional<std::ranges::iterator_t<V>> at;

  void start(V& from) { at.emplace(std::ranges::begin(from)); }
  bool done(V& from) const { return *at == std::ranges::end(from); }
};

/// Base of such a stage, a single_pass view: it has the rows of V.
template <class Self, element_view V>
class index_stage : public single_pass<Self> {
 public:
  static constexpr view_properties properties{};

  decltype(auto) rows() const { return base_.rows(); }
  void set_epoch(int epoch) { base_.set_epoch(epoch); }
  const V& base() const { return base_; }
  V& base() { return base_; }

 protected:
  explicit index_stage(V&& base) : base_(std::move(base)) {}

  V base_;
};

}  // namespace strata::data::detail
