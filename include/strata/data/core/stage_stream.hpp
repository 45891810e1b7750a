// Base of stages that make a stream of new elements from the view before them.
#pragma once
#include <strata/data/core/stream.hpp>
#include <utility>

namespace strata::data {

/// A stream whose source reads a view, `source.base()`.
template <stream_source Source>
class stage_stream : public stream_view<Source> {
 public:
  explicit stage_stream(Source source) : stream_view<Source>(std::move(source)) {}

  decltype(auto) base() const { return this->source().base(); }
};

}  // namespace strata::data
