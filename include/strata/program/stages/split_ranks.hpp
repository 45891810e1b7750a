// Pipelines of ranks that divide layers: each rank computes its part of the layers in stages.
#pragma once
#include <strata/program/stages/split_backend.hpp>
#include <strata/program/tensor_backend.hpp>
#include <type_traits>

namespace strata {

namespace detail {
/// The backend of a rank. Split: void, or how the stages of its part follow each other. Communicator: void, or that of the
/// processes that compute the stages.
template <class Base, class Split, class Communicator = void>
struct backend_of_rank {
  using type = split_among<tensor_backend<Base>, Split, Communicator>;
};
template <class Base, class Split>
struct backend_of_rank<Base, Split, void> {
  using type = split_backend<tensor_backend<Base>, Split>;
};
template <class Base, class Communicator>
struct backend_of_rank<Base, void, Communicator> {
  using type = tensor_backend<Base>;
};
template <class Base>
struct backend_of_rank<Base, void, void> {
  using type = tensor_backend<Base>;
};
}  // namespace detail

}  // namespace strata
