// SPDX-License-Identifier: Apache-2.0
// Independent simulations, side by side on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace troupe {

/// Calls `body(index)` for each index below `count`, on at most so many threads; 1 = on the calling
/// one alone. Returns when all are done. A virtual world is of one thread, so whole worlds are what
/// can run side by side: no world may be shared by two calls.
/// Errors: rethrows what the call with the lowest index threw, of those that threw.
void for_each_on_threads(size_t count, unsigned threads, const std::function<void(size_t)>& body);

} // namespace troupe
