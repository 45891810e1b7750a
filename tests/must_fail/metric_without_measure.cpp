// error: incomplete_model<.*metric_of_mine.*because<.*it_is_no_metric_which_has_measure_and_no_strategy_which_has_executor>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
struct metric_of_mine {
  static constexpr auto name = "metric_of_mine";
#ifdef TWIN
  template <class T>
  static double measure(std::span<const T> prediction, std::int32_t) {
    return double(prediction[0]);
  }
#endif
};
void train() { trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, metric_of_mine{}}; }
