// error: loss_cannot_be_divided<.*mean_squared_error.*because<.*by_classes_the_loss_is_a_categorical_crossentropy_with_from_logits_if_the_network_ends_without_softmax>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using loss = categorical_crossentropy<>;
#else
using loss = mean_squared_error;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>{}, adam{}, loss{},
                tensor_parallel<2, layout_map<rule<"dense_1", by_classes>>>{}};
  model.fit(data::synthetic_digits(64, 1) | data::one_hot<10> | data::batch<32>, epochs(1));
}
