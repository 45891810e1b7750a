// The reference backend: plain loops, and nothing is fused but a loss with the softmax or sigmoid before it, for exactness.
// Every other backend is compared with it and may stand on it.
#pragma once
#include <strata/cpu/reference/activations.hpp>
#include <strata/cpu/reference/affine.hpp>
#include <strata/cpu/reference/batch_normalization.hpp>
#include <strata/cpu/reference/branches.hpp>
#include <strata/cpu/reference/convolution.hpp>
#include <strata/cpu/reference/dropout.hpp>
#include <strata/cpu/reference/layer_normalization.hpp>
#include <strata/cpu/reference/lookup.hpp>
#include <strata/cpu/reference/losses.hpp>
#include <strata/cpu/reference/pooling.hpp>
#include <strata/cpu/reference/zero_padding.hpp>
