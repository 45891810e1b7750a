// Instances for float.
#include <strata/strata.hpp>

#define STRATA_INSTANCE template
#define STRATA_ELEMENT float
#include <strata/compiled/instances.ipp>
