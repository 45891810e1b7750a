// All kernels of mixed precision; whatever has none is served by those that do not ask for the precision.
#pragma once
#include <strata/cpu/mixed_conv_pool.hpp>
#include <strata/cpu/mixed_convolution.hpp>
#include <strata/cpu/mixed_dense.hpp>
