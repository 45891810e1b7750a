// Residual blocks with batch normalisation.
#include "measure.hpp"

void strata::bench::measure_resnet20(const runner& run) { run.network<resnet20, 128>("resnet20"); }
