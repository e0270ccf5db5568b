// SPDX-License-Identifier: Apache-2.0
// Large pages of memory, for programs that touch much of it in no order.
#pragma once

#if __has_include(<mimalloc.h>)
#  include <mimalloc.h>
#  pragma weak mi_option_enable // null in programs that are linked with another allocator
#endif

namespace troupe {

/// Thousands of actors lie in more pages than a processor knows the addresses of, and the one that
/// goes next is anywhere among them. From now on the program's allocator asks the system for pages
/// of 2 MiB; where the program has none that can, as without mimalloc, nothing happens.
/// Thread: any.
inline void prefer_huge_pages() {
#if __has_include(<mimalloc.h>)
  if (&mi_option_enable != nullptr) mi_option_enable(mi_option_large_os_pages);
#endif
}

} // namespace troupe
