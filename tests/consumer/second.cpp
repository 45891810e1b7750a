// All of strata once more: a function that is not inline would now be defined twice.
#include <strata/strata.hpp>
