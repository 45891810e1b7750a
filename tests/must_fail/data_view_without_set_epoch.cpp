// error: a view of samples has set_epoch.int., which passes the epoch on
#include <ranges>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/map.hpp>
#include <utility>
using namespace strata;

template <class V>
struct same : std::ranges::view_base {
  static constexpr data::view_properties properties{};
  V base;
  explicit same(V v) : base(std::move(v)) {}
  auto begin() { return base.begin(); }
  auto end() { return base.end(); }
  auto rows() const { return base.rows(); }
#ifdef TWIN
  void set_epoch(int epoch) { base.set_epoch(epoch); }
#endif
};

auto check() {
  auto numbers = data::range(4) | data::map([](auto x) { return float(x); });
  return same(numbers) | data::batch<2>;
}
