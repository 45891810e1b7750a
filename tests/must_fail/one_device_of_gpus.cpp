// error: wrong_devices<.*gpus.*because<.*one_device_takes_a_device_such_as_gpu_0_or_compute_options_and_mirrored_takes_several>
// whole program
// needs: boost_context
#include <strata/distribute/one_device.hpp>

#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>
#include <vector>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
int main() {
  const std::vector<float> x(80);
  const std::vector<int> y(10);
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, one_device{gpu(0)}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, one_device{gpus()}};
#endif
  model.fit(x, y, epochs(2));
}
