// error: data::cache after a random stage would keep the random numbers of the first epoch
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/cache.hpp>
using namespace strata;

template <class Base>
class noisy_rows : public data::detail::samples_around<Base> {
 public:
  static constexpr data::row_properties properties{.is_random = true};

  explicit noisy_rows(Base base) : data::detail::samples_around<Base>(std::move(base)) {}
  template <class T, class Then>
  void write(data::sample_index i, data::sample_index ahead, data::sample_place<T> to, Then then) const {
    this->base_.write(i, ahead, to, then);
    to.x[0] += T(i.epoch);
  }
};

auto cached() {
  auto set = data::from_tensor_slices(std::vector{1, 2, 3});
#ifdef TWIN
  auto kept = set | data::cache;
  return data::rows_view(kept, noisy_rows(kept.rows()));
#else
  return data::cache(data::rows_view(set, noisy_rows(set.rows())));
#endif
}
