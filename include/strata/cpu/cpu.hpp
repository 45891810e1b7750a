// All kernels of the CPU backend, and those of the reference on which it stands.
#pragma once
#include <strata/cpu/batch_norm.hpp>
#include <strata/cpu/conv_pool.hpp>
#include <strata/cpu/convolution.hpp>
#include <strata/cpu/dense.hpp>
#include <strata/cpu/folded_batch_norm.hpp>
#include <strata/cpu/reference.hpp>
