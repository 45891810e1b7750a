// error: data::prefetch takes a view of batches: put it after batch
#include <ranges>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/views/prefetch.hpp>
using namespace strata;

/// One batch of two numbers.
class two_numbers : public std::ranges::view_base {
 public:
  using value_type = samples<float>;
  static constexpr int batch_size = 2;
  static constexpr shape sample_shape{1}, target_shape{};
#ifdef TWIN
  static constexpr label_kind labels = label_kind::none;
#endif
  const samples<float>* begin() const { return &batch_; }
  const samples<float>* end() const { return &batch_ + 1; }

 private:
  static constexpr float x_[2] = {1, 2};
  samples<float> batch_{x_, 2};
};

void check() { two_numbers{} | data::prefetch(); }
