// SPDX-License-Identifier: Apache-2.0
// Large pages of memory, for programs that touch much of it in no order.
#pragma once

#if __has_include(<mimalloc.h>)
#  include <mimalloc.h>
#  pragma weak mi_option_enable // null in programs that are linked with another allocator
#endif

namespace troupe {

/// Thousands of actors lie in more pages than a processor's address cache holds, and the actor that
/// runs next lies anywhere among them. From now on the program's allocator takes pages of 2 MiB
/// from the system; a program whose allocator cannot, as without mimalloc, goes on as before.
/// Thread: any.
inline void prefer_huge_pages() {
#if __has_include(<mimalloc.h>)
  if (&mi_option_enable != nullptr) mi_option_enable(mi_option_large_os_pages);
#endif
}

} // namespace troupe
