// error: incomplete_model<.*metric_of_mine.*because<.*metrics_have_a_name>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
struct metric_of_mine {
#ifdef TWIN
  static constexpr auto name = "metric_of_mine";
#endif
  template <class T>
  static double measure(std::span<const T> prediction, std::int32_t) {
    return double(prediction[0]);
  }
};
void train() { trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, metric_of_mine{}}; }
