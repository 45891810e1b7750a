// Includes all of strata once more: a function that is not inline would be defined twice.
#include <strata/strata.hpp>
