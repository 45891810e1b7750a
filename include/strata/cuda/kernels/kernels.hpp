// All kernels of the CUDA backend.
#pragma once
#include <strata/cuda/kernels/batch_norm.hpp>
#include <strata/cuda/kernels/conv2d.hpp>
#include <strata/cuda/kernels/conv2d_transpose.hpp>
#include <strata/cuda/kernels/dense.hpp>
#include <strata/cuda/kernels/elementwise.hpp>
#include <strata/cuda/kernels/embedding.hpp>
#include <strata/cuda/kernels/library_conv2d.hpp>
#include <strata/cuda/kernels/library_dense.hpp>
#include <strata/cuda/kernels/losses.hpp>
#include <strata/cuda/kernels/pooling.hpp>
#include <strata/cuda/kernels/rows.hpp>
