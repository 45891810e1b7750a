// All kernels of the CPU backend, and those of the reference on which it stands.
#pragma once
#include <strata/cpu/activations.hpp>
#include <strata/cpu/batch_norm.hpp>
#include <strata/cpu/branches.hpp>
#include <strata/cpu/conv_pool.hpp>
#include <strata/cpu/convolution.hpp>
#include <strata/cpu/dense.hpp>
#include <strata/cpu/dense_loss.hpp>
#include <strata/cpu/dropout.hpp>
#include <strata/cpu/folded_batch_norm.hpp>
#include <strata/cpu/layer_norm.hpp>
#include <strata/cpu/losses.hpp>
#include <strata/cpu/mixed.hpp>
#include <strata/cpu/pooling.hpp>
#include <strata/cpu/reference.hpp>
#include <strata/cpu/softmax.hpp>
#include <strata/cpu/zero_padding.hpp>
