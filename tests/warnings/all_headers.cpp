// Every function of these headers that is no template, compiled with optimization: g++ finds some warnings only then.
#include <strata/data.hpp>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/weights_file.hpp>
using namespace strata;

struct net : sequential<input<8, 8, 1>, conv2d<4, 3, relu>, batch_norm<>, max_pool2d<2>, flatten, dense<10, softmax>> {};

int main() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}};
  model.load_weights("weights.safetensors");
  return int(model.parameters().size() == 0);
}
