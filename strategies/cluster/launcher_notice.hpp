// SPDX-License-Identifier: Apache-2.0
// The notice of a job to the launcher of its processes.
#pragma once

#include "actors/net/placement.hpp"
#include "messages/errors/errc.hpp"
#include "strategies/cluster/environment.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// The environment variable with the name of the launcher's socket, behind an '@': a datagram
/// socket in Linux' abstract namespace, as for systemd's NOTIFY_SOCKET.
inline constexpr const char* launcher_variable = "TROUPE_LAUNCHER";

/// A notice has no more bytes than this.
constexpr size_t launcher_notice_bytes_max = 256;

/// The notice for the launcher: "spare worker ps", "spare worker", "spare ps"; "spare" for none.
[[nodiscard]] std::string launcher_notice(const spared_tasks& spared);

/// Reads such a notice. Errors: invalid_argument if the text is none.
[[nodiscard]] expected<spared_tasks> parse_launcher_notice(std::string_view text);

/// Tells the launcher, if there is one, which tasks it is not to end the job for. Never waits: a
/// launcher that does not hear it ends the job as for any other program.
/// @returns Whether it was sent.
bool tell_launcher(const spared_tasks& spared, const environment_reader& environment);

} // namespace troupe
