// Networks of dense layers.
#include "measure.hpp"

void strata::bench::measure_dense(const runner& run) {
  run.network<mlp_128, 64>("mlp_128");
  run.network<mlp_64_64, 64>("mlp_64_64");
  run.network<mlp_64_64, 1>("mlp_64_64");
  run.network<mlp_512_512, 128>("mlp_512_512");
  run.network<wide_mlp, 256>("wide_mlp");
  run.network<autoencoder, 128, binary_crossentropy<>>("autoencoder");
}
