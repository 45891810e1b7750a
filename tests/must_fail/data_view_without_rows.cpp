// error: data::shuffle takes a view of samples or elements: put it before batch
#include <iterator>
#include <ranges>
#include <strata/data/core/addressable.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/shuffle.hpp>
using namespace strata;

/// A view of the rows of another one, in reverse order.
template <data::detail::addressable V>
class reverse_view : public std::ranges::view_base {
 public:
  static constexpr data::view_properties properties{};

  explicit reverse_view(V base) : base_(base) {}
  auto begin() const { return std::reverse_iterator(base_.end()); }
  auto end() const { return std::reverse_iterator(base_.begin()); }
#ifdef TWIN
  decltype(auto) rows() const { return base_.rows(); }
#endif
  void set_epoch(int epoch) { base_.set_epoch(epoch); }

 private:
  V base_;
};

void check() { reverse_view(data::range(4)) | data::shuffle(4); }
