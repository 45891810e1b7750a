// Instances for double.
#include <strata/strata.hpp>

#define STRATA_INSTANCE template
#define STRATA_ELEMENT double
#include <strata/compiled/instances.ipp>
