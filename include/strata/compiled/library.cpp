// The code that does not depend on a network, compiled once: link it, and define STRATA_COMPILED before strata's headers.
#define STRATA_LIBRARY
#include <strata/data/sets/find_mnist.hpp>
#include <strata/program/print_divisions.hpp>
#include <strata/program/stages/print_stages.hpp>
#include <strata/strata.hpp>
#include <strata/xla/emitter/emitter.hpp>

namespace strata::compiled_library {
extern const int STRATA_TARGET = 0;
}
