// The namespaces of strata: strata itself has what programs write, core what extensions write, such as concepts, programs,
// operations and kernels. The namespaces that only the library uses see the names of core.
#pragma once

namespace strata {

namespace core {}
namespace detail {
using namespace core;
}
namespace machine {
using namespace core;
}
namespace simd {
using namespace core;
}
namespace stablehlo {
using namespace core;
}
namespace reasons {
using namespace core;
}
namespace data::detail {
using namespace core;
}

}  // namespace strata
