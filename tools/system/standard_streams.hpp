// SPDX-License-Identifier: Apache-2.0
// What a process needs of its standard streams before it opens anything.
#pragma once

namespace troupe {

/// Gives each standard stream that is closed, as by `>&-` of a shell, the null device: the next
/// descriptor that is opened would be taken for it, and get what is printed.
void open_standard_streams();

} // namespace troupe
