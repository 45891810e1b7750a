// error: wrong_argument<.*precision_score<.*class_id<10>.*because<.*class_id_must_be_less_than_the_number_of_predictions>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, precision_score<class_id<9>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, precision_score<class_id<10>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
