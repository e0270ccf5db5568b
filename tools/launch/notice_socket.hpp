// SPDX-License-Identifier: Apache-2.0
// The socket on which a job tells `troupe launch` which tasks it may lose.
#pragma once

#include "actors/net/placement.hpp"
#include "messages/errors/errc.hpp"

#include <optional>
#include <string>

namespace troupe {

/// A datagram socket in Linux' abstract namespace, with a name that the kernel has drawn. A task
/// sends before it can lose another one, so the launcher reads when a task has ended and never
/// waits. Notices of other users are dropped. Thread: one at a time.
class notice_socket {
public:
  /// Errors: resource.
  [[nodiscard]] static expected<notice_socket> open();

  notice_socket(notice_socket&& other) noexcept;
  notice_socket& operator=(notice_socket&& other) = delete;
  ~notice_socket();

  /// For the tasks' environment: '@' and the name.
  [[nodiscard]] const std::string& name() const { return name_; }

  /// All notices since the last call, taken together; nothing if there was none.
  [[nodiscard]] std::optional<spared_tasks> take();

private:
  notice_socket(int socket, std::string name);

  int socket_;
  std::string name_;
};

} // namespace troupe
