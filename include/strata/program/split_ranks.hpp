// Pipelines of ranks that divide layers: each rank computes its part of the layers in stages.
#pragma once
#include <strata/program/split.hpp>
#include <strata/program/tensor_backend.hpp>
#include <type_traits>

namespace strata {

namespace detail {
/// The backend of a rank. Split: void, or how the stages of its part follow each other.
template <class Base, class Split>
struct backend_of_rank {
  using type = split_backend<tensor_backend<Base>, Split>;
};
template <class Base>
struct backend_of_rank<Base, void> {
  using type = tensor_backend<Base>;
};
}  // namespace detail

}  // namespace strata

// The engine of the CPU: strata/cpu/cpu.hpp.
#define STRATA_SPLITS_RANKS 1
#ifdef STRATA_CPU_SPLIT_RANKS_ENGINE
#include STRATA_CPU_SPLIT_RANKS_ENGINE
#endif
