// The CPU backend: its engine, its kernels, and those of the reference backend for all other operations.
#pragma once
#include <strata/cpu/convolution/conv2d.hpp>
#include <strata/cpu/convolution/conv2d_transpose.hpp>
#include <strata/cpu/convolution/conv_pool.hpp>
#include <strata/cpu/engine/engine.hpp>
#include <strata/cpu/kernels/activations.hpp>
#include <strata/cpu/kernels/batch_norm.hpp>
#include <strata/cpu/kernels/concat.hpp>
#include <strata/cpu/kernels/dense.hpp>
#include <strata/cpu/kernels/dense_loss.hpp>
#include <strata/cpu/kernels/dropout.hpp>
#include <strata/cpu/kernels/elementwise_join.hpp>
#include <strata/cpu/kernels/embedding.hpp>
#include <strata/cpu/kernels/folded_batch_norm.hpp>
#include <strata/cpu/kernels/layer_norm.hpp>
#include <strata/cpu/kernels/losses.hpp>
#include <strata/cpu/kernels/normalization.hpp>
#include <strata/cpu/kernels/pooling.hpp>
#include <strata/cpu/kernels/row_losses.hpp>
#include <strata/cpu/kernels/softmax.hpp>
#include <strata/cpu/kernels/up_sampling2d.hpp>
#include <strata/cpu/kernels/zero_padding2d.hpp>
#include <strata/cpu/mixed/mixed.hpp>
#include <strata/reference/reference.hpp>

// The engines of divided networks come with the strategies that divide, in whichever order the headers are included: other
// programs do not compile them. program/stages/split_backend.hpp, program/tensor_backend.hpp and program/stages/split_ranks.hpp
// include them if they come later.
#define STRATA_CPU_SPLIT_ENGINE <strata/cpu/engine/process_split_engine.hpp>
#define STRATA_CPU_TENSOR_ENGINE <strata/cpu/engine/tensor_engine.hpp>
#define STRATA_CPU_SPLIT_RANKS_ENGINE <strata/cpu/engine/process_split_tensor_engine.hpp>
#ifdef STRATA_SPLITS_PROGRAMS
#include STRATA_CPU_SPLIT_ENGINE
#endif
#ifdef STRATA_DIVIDES_LAYERS
#include STRATA_CPU_TENSOR_ENGINE
#endif
#ifdef STRATA_SPLITS_RANKS
#include STRATA_CPU_SPLIT_RANKS_ENGINE
#endif
