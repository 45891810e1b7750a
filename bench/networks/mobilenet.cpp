// Depthwise-separable convolutions with batch normalisation.
#include "measure.hpp"

void strata::bench::measure_mobilenet(const runner& run) { run.network<mobilenet, 64>("mobilenet"); }
