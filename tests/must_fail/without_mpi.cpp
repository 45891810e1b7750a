// Without the header of MPI.
// needs: openssl protozero

// case: mpi_without_its_header
// error: please_include_strata_communicators_mpi_hpp
// whole program
#include <strata/communicators/communication_options.hpp>

#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{},
                multi_worker_mirrored{tf_config(), {.communication = {.implementation = communication_implementation::tcp}}}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{},
                multi_worker_mirrored{tf_config(), {.communication = {.implementation = mpi_communication}}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
