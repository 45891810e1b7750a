// Bases of stages over two views, zip and concatenate, and of their rows.
#pragma once
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/addressable.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/data/core/single_pass.hpp>
#include <string>
#include <utility>

namespace strata::data::detail {

template <class A, class B>
std::string order_of_both(const char* stage, const A& a, const B& b) {
  return strata::detail::text_of({stage, "(", order_of(a), ", ", order_of(b), ")"});
}

/// Base of the rows of two random-access views.
template <addressable A, addressable B>
class two_views {
 public:
  using rows_a = rows_t<A>;
  using rows_b = rows_t<B>;

  two_views(A a, B b) : a_(std::move(a)), b_(std::move(b)) {}

  const rows_a& a() const { return a_.rows(); }
  const rows_b& b() const { return b_.rows(); }

 protected:
  A a_;
  B b_;
};

/// Base of the rows of two views of any kind.
template <class RowsA, class RowsB>
class two_row_sources {
 public:
  using rows_a = RowsA;
  using rows_b = RowsB;

  two_row_sources(RowsA a, RowsB b) : a_(std::move(a)), b_(std::move(b)) {}

  const RowsA& a() const { return a_; }
  const RowsB& b() const { return b_; }

 private:
  RowsA a_;
  RowsB b_;
};

/// Base of Self, which reads A and B. Its rows read the rows of both. A copy makes new rows, since a copied stream has a pool of
/// its own.
template <class Self, element_view A, element_view B, class Rows>
class stage_over_two : public single_pass<Self> {
 public:
  static constexpr view_properties properties{.same_on_all_workers = same_on_all_workers<A>() && same_on_all_workers<B>()};

  stage_over_two(stage_over_two&&) = default;
  stage_over_two& operator=(stage_over_two&&) = default;
  stage_over_two(const stage_over_two& other) : a_(other.a_), b_(other.b_), rows_(a_.rows(), b_.rows()) {}
  stage_over_two& operator=(const stage_over_two& other) { return *this = stage_over_two(other); }

  const Rows& rows() const { return rows_; }
  void set_epoch(int epoch) { a_.set_epoch(epoch), b_.set_epoch(epoch); }
  std::size_t shards() const { return shards_of(a_); }

 protected:
  /// Throws strata_error if the views are shared among unequal numbers of workers.
  stage_over_two(const char* stage, A a, B b) : a_(std::move(a)), b_(std::move(b)), rows_(a_.rows(), b_.rows()) {
    if (shards_of(a_) != shards_of(b_))
      throw_error({stage, ": one view is shared among ", shards_of(a_), " workers, the other among ", shards_of(b_),
                   ": put shard after ", stage});
  }

  A a_;
  B b_;
  Rows rows_;
};

}  // namespace strata::data::detail
