// error: metric_cannot_be_divided<.*f1_score<.*because<.*by_classes_a_metric_has_measure_place_as_accuracy_and_top_k_categorical_accuracy_do>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using map = layout_map<rule<"dense_1", by_columns>>;
#else
using map = layout_map<rule<"dense_1", by_classes>>;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>{},
                adam{},
                sparse_categorical_crossentropy{},
                accuracy{},
                f1_score<>{},
                tensor_parallel<2, map>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
