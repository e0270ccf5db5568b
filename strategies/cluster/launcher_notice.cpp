// SPDX-License-Identifier: Apache-2.0
// Writes and reads the words of a notice, and sends it.
#include "strategies/cluster/launcher_notice.hpp"

#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace troupe {

namespace {

constexpr std::string_view opening = "spare";

// The next word, which is taken from the text.
std::string_view take_word(std::string_view& text) {
  auto end = text.find(' ');
  auto word = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return word;
}

} // namespace

std::string launcher_notice(const spared_tasks& spared) {
  return fmt::format("{}{}{}", opening, spared.workers ? " worker" : "",
                     spared.parameter_servers ? " ps" : "");
}

expected<spared_tasks> parse_launcher_notice(std::string_view text) {
  auto rest = text.substr(0, launcher_notice_bytes_max);
  auto is_notice = take_word(rest) == opening;
  spared_tasks spared;
  while (is_notice && !rest.empty()) {
    auto word = take_word(rest);
    if (word == "worker")
      spared.workers = true;
    else if (word == "ps")
      spared.parameter_servers = true;
    else
      is_notice = false;
  }
  if (is_notice) return spared;
  return fail(errc::invalid_argument, "a notice to the launcher is 'spare' and task types");
}

bool tell_launcher(const spared_tasks& spared, const environment_reader& environment) {
  auto name = environment(launcher_variable);
  sockaddr_un address{};
  if (!name || !name->starts_with("@") || name->size() > sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name->data(), name->size());
  address.sun_path[0] = '\0'; // in the abstract namespace
  auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name->size());
  int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return false;
  auto text = launcher_notice(spared);
  auto sent = ::sendto(socket, text.data(), text.size(), MSG_NOSIGNAL,
                       reinterpret_cast<const sockaddr*>(&address), bytes);
  ::close(socket);
  return sent == static_cast<ssize_t>(text.size());
}

} // namespace troupe
