// error: (cannot convert|could not convert|no (known|viable) conversion).*leaf_gradients.*global_gradient
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<4>, dense<2, softmax>>;
using engine_type = cpu_engine<program<net, sparse_categorical_crossentropy<>, sgd, type_list<>>, cpu>;
void step(engine_type& engine, const samples<float>& batch, const sgd& rules) {
  engine.begin(purpose::training, batch, philox{1}, 0, 2);
  engine.forward_backward(detail::no_callback{});
#ifdef TWIN
  engine.update(rules, 0, 0.1, whole_batch_reduction::reduce(engine.gradients(), batch.count));
#else
  engine.update(rules, 0, 0.1, engine.gradients());
#endif
}
