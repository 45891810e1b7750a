// All kernels of mixed precision. Operations without one use the kernels that serve every precision.
#pragma once
#include <strata/cpu/mixed/conv2d.hpp>
#include <strata/cpu/mixed/conv_pool.hpp>
#include <strata/cpu/mixed/dense.hpp>
