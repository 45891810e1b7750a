// Single convolutions on images of 1 and 3 channels.
#include "measure.hpp"

void strata::bench::measure_few_channels(const runner& run) {
  run.network<single_conv<27, 1, 32, 1, same_padding>, 64>("conv_27x27x1_same");
  run.network<single_conv<27, 1, 32, 2, valid_padding>, 64>("conv_27x27x1_stride2");
  run.network<single_conv<15, 1, 32, 1, valid_padding>, 64>("conv_15x15x1");
  run.network<single_conv<27, 3, 32, 1, valid_padding>, 64>("conv_27x27x3");
  run.network<single_conv<27, 3, 32, 2, same_padding>, 64>("conv_27x27x3_same_stride2");
  run.network<single_conv<15, 3, 32, 1, same_padding>, 64>("conv_15x15x3_same");
}
