// SPDX-License-Identifier: Apache-2.0
// Casts one element at a time.
#include "kernels/math/cast.hpp"

namespace troupe::reference {

void cast(const context&, const elements& from, const mutable_elements& to) {
  TROUPE_ASSERT(from.count == to.count, from.count, to.count);
  visit_floating(from.type, [&]<class From>(From) {
    visit_floating(to.type, [&]<class To>(To) {
      auto values = from.as<From>();
      auto out = to.as<To>();
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = narrow<To>(values[i]);
    });
  });
}

} // namespace troupe::reference
