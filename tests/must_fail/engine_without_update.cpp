// error: incomplete_model<.*engine_of_mine.*because<.*engines_have_update_of_a_global_gradient_and_update_state>
#include <strata/synchronous/synchronous.hpp>

#include <strata/strata.hpp>

using namespace strata;
using P = program<sequential<input<8>, dense<10, softmax>>, sparse_categorical_crossentropy<>, adam, type_list<>>;
struct engine_of_mine : cpu_engine<P, cpu> {
  using cpu_engine<P, cpu>::cpu_engine;
#ifndef TWIN
  void update();
#endif
};
template <>
struct strata::engine_for<P, cpu> {
  using type = engine_of_mine;
};
bool check = sizeof(synchronous_executor<P, cpu>) > 0;
