// SPDX-License-Identifier: Apache-2.0
// The same all-reduce by bare TCP sockets, one process and one thread for each rank: what the
// machine allows a program that sleeps between messages.
//
// raw_all_reduce RANK ADDRESSES BYTES ROUNDS   rank 0 prints the seconds of each round, each rank
// the processor's seconds of all; ADDRESSES: host:port,host:port, as many as a power of two
#include "benchmarks/processor_time.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace {

// Longer arrays are added up slice by slice.
constexpr size_t short_bytes_max = 64 * 1024;

std::vector<sockaddr_in> addresses_of(const std::string& list) {
  std::vector<sockaddr_in> all;
  std::istringstream stream{list};
  for (std::string word; std::getline(stream, word, ',');) {
    auto colon = word.rfind(':');
    auto& address = all.emplace_back();
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::atoi(word.c_str() + colon + 1)));
    inet_pton(AF_INET, word.substr(0, colon).c_str(), &address.sin_addr);
  }
  return all;
}

int tuned(int socket) {
  int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(socket, F_SETFL, O_NONBLOCK);
  return socket;
}

// By rank: connections with all others. Each rank dials those before it.
std::vector<int> meet(size_t rank, const std::vector<sockaddr_in>& addresses) {
  const auto* own = reinterpret_cast<const sockaddr*>(&addresses[rank]);
  int door = ::socket(AF_INET, SOCK_STREAM, 0);
  int on = 1;
  ::setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(door, own, sizeof addresses[rank]) != 0) std::exit(1);
  ::listen(door, 16);
  std::vector<int> peers(addresses.size(), -1);
  for (size_t peer = 0; peer < rank; ++peer) {
    const auto* there = reinterpret_cast<const sockaddr*>(&addresses[peer]);
    for (peers[peer] = ::socket(AF_INET, SOCK_STREAM, 0);
         ::connect(peers[peer], there, sizeof addresses[peer]) != 0; ::usleep(10'000)) {
      ::close(peers[peer]);
      peers[peer] = ::socket(AF_INET, SOCK_STREAM, 0);
    }
    auto name = static_cast<uint8_t>(rank);
    if (::write(peers[peer], &name, 1) != 1) std::exit(1);
  }
  for (auto left = addresses.size() - rank - 1; left > 0; --left) {
    int peer = ::accept(door, nullptr, nullptr);
    uint8_t name = 0;
    if (::read(peer, &name, 1) != 1 || name >= peers.size()) std::exit(1);
    peers[name] = peer;
  }
  for (auto peer : peers)
    if (peer >= 0) tuned(peer);
  return peers;
}

// Sends as many bytes as it receives, both at once.
void exchange(int peer, const void* from, size_t sent_bytes, void* into, size_t received_bytes) {
  const auto* out = static_cast<const std::byte*>(from);
  auto* in = static_cast<std::byte*>(into);
  while (sent_bytes > 0 || received_bytes > 0) {
    pollfd ready{peer, 0, 0};
    if (sent_bytes > 0) ready.events |= POLLOUT;
    if (received_bytes > 0) ready.events |= POLLIN;
    ::poll(&ready, 1, -1);
    auto sent = (ready.revents & POLLOUT) != 0 ? ::send(peer, out, sent_bytes, MSG_NOSIGNAL) : 0;
    if (sent > 0) out += sent, sent_bytes -= static_cast<size_t>(sent);
    if ((ready.revents & POLLIN) == 0) continue;
    auto received = ::recv(peer, in, received_bytes, 0);
    if (received == 0) std::exit(1);
    if (received > 0) in += received, received_bytes -= static_cast<size_t>(received);
  }
}

struct slice {
  size_t begin, end;

  [[nodiscard]] size_t bytes() const { return (end - begin) * sizeof(float); }
};

void all_reduce(const std::vector<int>& peers, size_t rank, const std::vector<float>& own,
                std::vector<float>& sum, std::vector<float>& received) {
  auto is_short = own.size() * sizeof(float) <= short_bytes_max;
  auto slice_of = [&](size_t of) {
    if (is_short) return slice{0, own.size()};
    return slice{own.size() * of / peers.size(), own.size() * (of + 1) / peers.size()};
  };
  auto mine = slice_of(rank);
  std::copy(own.begin() + mine.begin, own.begin() + mine.end, sum.begin() + mine.begin);
  for (size_t turn = 1; turn < peers.size(); ++turn) {
    auto peer = rank ^ turn;
    auto theirs = slice_of(peer);
    exchange(peers[peer], &own[theirs.begin], theirs.bytes(), received.data(), mine.bytes());
    for (auto i = mine.begin; i < mine.end; ++i)
      sum[i] += received[i - mine.begin];
  }
  for (size_t turn = 1; turn < peers.size() && !is_short; ++turn) {
    auto peer = rank ^ turn;
    auto theirs = slice_of(peer);
    exchange(peers[peer], &sum[mine.begin], mine.bytes(), &sum[theirs.begin], theirs.bytes());
  }
}

} // namespace

int main(int count, char** arguments) {
  if (count < 5) return EXIT_FAILURE;
  auto rank = static_cast<size_t>(std::atoi(arguments[1]));
  auto peers = meet(rank, addresses_of(arguments[2]));
  std::vector<float> own(static_cast<size_t>(std::atoll(arguments[3])) / sizeof(float), 1);
  std::vector<float> sum(own.size());
  std::vector<float> received(own.size());
  auto used = processor_seconds();
  for (int i = 0; i < std::atoi(arguments[4]); ++i) {
    auto begin = std::chrono::steady_clock::now();
    all_reduce(peers, rank, own, sum, received);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (rank == 0) std::printf("%.9f\n", took.count());
  }
  std::printf("processor %.9f\n", processor_seconds() - used);
}
