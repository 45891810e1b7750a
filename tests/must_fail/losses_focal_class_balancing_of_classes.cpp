// error: wrong_option<.*by_layer<.*categorical_focal_crossentropy<.*apply_class_balancing.*because<.*the_layer_does_not_know_this_option>
#include <strata/layers/dense.hpp>
#include <strata/losses/categorical_focal_crossentropy.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<4, softmax>, categorical_focal_crossentropy<from_logits>>;
#else
using net = sequential<input<8>, dense<4, softmax>, categorical_focal_crossentropy<apply_class_balancing>>;
#endif
net n;
