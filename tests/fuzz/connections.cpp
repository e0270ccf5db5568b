// SPDX-License-Identifier: Apache-2.0
// All that a connection brings: frames of any kind behind each other, long messages in parts. The
// result must not depend on how many bytes are read at a time, and a sender must not make the
// receiver keep more than it was granted.
#include "actors/net/sockets/inbox.hpp"
#include "messages/errors/assert.hpp"
#include "tests/fuzz/fuzz_target.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace troupe::fuzz {

namespace {

constexpr frame_limits limits{
  .message_bytes_max = 1 << 16, .part_bytes_max = 1 << 12, .hello_bytes_max = 1 << 12};
constexpr uint64_t window = 1 << 14;

/// The frames that one reader has taken from a connection.
struct reading {
  std::vector<received_frame> frames;
  bool is_refused = false;
};

reading read_by(std::span<const std::byte> input, size_t step) {
  reading result;
  auto retained = std::make_shared<retained_bytes>(nullptr, 1);
  inbox in{limits, window, retained};
  while (!input.empty() && !result.is_refused) {
    auto space = in.space();
    TROUPE_ASSERT(space.size() > 0);
    auto count = std::min({space.size(), input.size(), step});
    std::memcpy(space.data(), input.data(), count);
    input = input.subspan(count);
    auto taken = in.take(count, [&](received_frame frame) {
      TROUPE_ASSERT(frame.body.frame.size() == frame.header.body_bytes);
      TROUPE_ASSERT(frame.header.total_bytes == 0);
      result.frames.push_back(std::move(frame));
      return expected<void>{};
    });
    result.is_refused = !taken;
    for (auto of : {lane::control, lane::bulk})
      TROUPE_ASSERT(retained->bytes(of) < window + limits.message_bytes_max);
  }
  return result;
}

bool are_same(const received_frame& one, const received_frame& other) {
  return one.header == other.header && std::ranges::equal(one.body.frame, other.body.frame);
}

} // namespace

bool accepts(std::span<const std::byte> input) {
  auto at_once = read_by(input, input.size());
  for (size_t step : {1, 57, 1000}) {
    auto slowly = read_by(input, step);
    TROUPE_ASSERT(slowly.is_refused == at_once.is_refused);
    TROUPE_ASSERT(std::ranges::equal(slowly.frames, at_once.frames, are_same));
  }
  return !at_once.is_refused && !at_once.frames.empty();
}

} // namespace troupe::fuzz
