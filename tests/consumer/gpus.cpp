// A test of a program for GPUs, on a machine without one.
#include <strata/cuda/machine/machine.hpp>

int main() {
  strata::machine::emulate_devices(2);
  return strata::machine::device_count() == 2 ? 0 : 1;
}
