// SPDX-License-Identifier: Apache-2.0
// Binds the socket, and reads from it without waiting.
#include "tools/launch/notice_socket.hpp"

#include "strategies/cluster/launcher_notice.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

// The sender's user, if the kernel names it.
std::optional<uid_t> sender_of(msghdr& message) {
  for (auto* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(each), sizeof sender);
    return sender.uid;
  }
  return std::nullopt;
}

tl::unexpected<error> cannot_listen(int problem) {
  return fail(errc::resource,
              fmt::format("cannot listen to the tasks: {}", std::strerror(problem)));
}

} // namespace

expected<notice_socket> notice_socket::open() {
  int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return cannot_listen(errno);
  notice_socket opened{socket, {}};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  int yes = 1;
  socklen_t bytes = sizeof address.sun_family; // an address without a name has the kernel draw one
  auto* generic_address = reinterpret_cast<sockaddr*>(&address);
  if (::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0
      || ::bind(socket, generic_address, bytes) != 0)
    return cannot_listen(errno);
  bytes = sizeof address;
  if (::getsockname(socket, generic_address, &bytes) != 0) return cannot_listen(errno);
  opened.name_.assign(address.sun_path, bytes - offsetof(sockaddr_un, sun_path));
  opened.name_[0] = '@';
  return opened;
}

notice_socket::notice_socket(int socket, std::string name)
  : socket_(socket), name_(std::move(name)) {}

notice_socket::notice_socket(notice_socket&& other) noexcept
  : socket_(std::exchange(other.socket_, -1)), name_(std::move(other.name_)) {}

notice_socket::~notice_socket() {
  if (socket_ >= 0) ::close(socket_);
}

std::optional<spared_tasks> notice_socket::take() {
  std::optional<spared_tasks> spared;
  while (true) {
    std::array<char, launcher_notice_bytes_max> text{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
    iovec part{text.data(), text.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    auto count = ::recvmsg(socket_, &message, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return spared;
    auto notice = parse_launcher_notice({text.data(), static_cast<size_t>(count)});
    if (!notice || sender_of(message) != ::geteuid()) continue;
    if (!spared) spared.emplace();
    spared->workers |= notice->workers;
    spared->parameter_servers |= notice->parameter_servers;
  }
}

} // namespace troupe
