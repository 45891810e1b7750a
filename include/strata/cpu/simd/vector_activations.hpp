// All activations that have vector code.
#pragma once
#include <strata/cpu/simd/smooth_activations.hpp>
#include <strata/cpu/simd/vector_activation.hpp>
