// error: metric_does_not_go_with_labels<.*categorical_accuracy.*label_kind::sparse
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
#ifdef TWIN
using metric_of_mine = sparse_categorical_accuracy;
#else
using metric_of_mine = categorical_accuracy;
#endif
using whole = trainer<program<net, sparse_categorical_crossentropy<>, adam, type_list<metric_of_mine>>, one_device<>>;
bool check = sizeof(whole) > 0;
