// All kernels of the CPU backend, and those of the reference on which it stands.
#pragma once
#include <strata/cpu/dense.hpp>
#include <strata/cpu/reference.hpp>
#include <strata/cpu/reference/losses.hpp>
