// The reference backend: plain loops. It fuses nothing but a loss with the softmax or sigmoid before it, for exactness. The tests
// compare every other backend with it, and another backend may fall back on it.
#pragma once
#include <strata/reference/activations.hpp>
#include <strata/reference/batch_norm.hpp>
#include <strata/reference/columns.hpp>
#include <strata/reference/concat.hpp>
#include <strata/reference/conv2d.hpp>
#include <strata/reference/conv2d_transpose.hpp>
#include <strata/reference/dense.hpp>
#include <strata/reference/dropout.hpp>
#include <strata/reference/elementwise_join.hpp>
#include <strata/reference/embedding.hpp>
#include <strata/reference/layer_norm.hpp>
#include <strata/reference/losses.hpp>
#include <strata/reference/normalization.hpp>
#include <strata/reference/pooling.hpp>
#include <strata/reference/up_sampling2d.hpp>
#include <strata/reference/zero_padding2d.hpp>
