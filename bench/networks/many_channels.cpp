// Single convolutions on images of 17 and 64 channels.
#include "measure.hpp"

void strata::bench::measure_many_channels(const runner& run) {
  run.network<single_conv<27, 17, 40, 1, same_padding>, 64>("conv_27x27x17_same");
  run.network<single_conv<27, 17, 40, 2, valid_padding>, 64>("conv_27x27x17_stride2");
  run.network<single_conv<15, 17, 40, 1, valid_padding>, 64>("conv_15x15x17");
  run.network<single_conv<27, 64, 64, 1, valid_padding>, 64>("conv_27x27x64");
  run.network<single_conv<15, 64, 64, 1, same_padding>, 64>("conv_15x15x64_same");
  run.network<single_conv<15, 64, 64, 2, same_padding>, 64>("conv_15x15x64_same_stride2");
}
