// A deep network of convolutions, half of a gigaFLOP per sample and step.
#include "measure.hpp"

void strata::bench::measure_vgg(const runner& run) { run.network<vgg, 64>("vgg"); }
