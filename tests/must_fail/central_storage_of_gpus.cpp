// error: wrong_devices<.*gpus.*because<.*central_storage_takes_cpus_and_gpus_are_for_mirrored>
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
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, central_storage{cpus(2)}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, central_storage{gpus()}};
#endif
  model.fit(x, y, epochs(2));
}
