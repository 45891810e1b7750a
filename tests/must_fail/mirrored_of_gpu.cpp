// error: wrong_devices<.*gpu.*because<.*mirrored_takes_a_list_of_devices_such_as_gpus_or_cpus_4>
// whole program
// needs: boost_context
#include <strata/distribute/mirrored.hpp>

#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>
#include <vector>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
int main() {
  const std::vector<float> x(80);
  const std::vector<int> y(10);
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, mirrored{gpus({0})}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, mirrored{gpu(0)}};
#endif
  model.fit(x, y, epochs(2));
}
