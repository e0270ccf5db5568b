// SPDX-License-Identifier: Apache-2.0
// One example of every message, and what tests of frames do with them.
#pragma once

#include "messages/decode.hpp"
#include "messages/frame.hpp"
#include "messages/payload.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A message with every field set to something that is not its default.
struct message_example {
  std::string_view name; ///< As the envelope's schema spells it.
  std::vector<std::byte> frame;
};

/// One example of every message that the envelope lists, in its order.
[[nodiscard]] const std::vector<message_example>& message_examples();

/// A tensor of the given elements.
template <class T>
[[nodiscard]] tensor make_array(std::vector<int64_t> extents, std::vector<T> elements) {
  auto owner = std::make_shared<std::vector<T>>(std::move(elements));
  return tensor::wrap(owner->data(), dtype_of<T>, shape{std::move(extents)}, owner);
}

/// 1, 2, 3, ... to `count`.
[[nodiscard]] std::vector<float> counting_to(size_t count);

/// A sparse gradient: rows 3 and 1 of a [4, 10] array. The message copies the row numbers, which
/// are few, and refers to the values, which are more than `limits::copied_bytes_max`.
[[nodiscard]] indexed_slices make_slices();

/// All fields of any message as text, read through its generated reader. Throws what the readers
/// do.
[[nodiscard]] std::string print(const any_msg& message);

/// A copy of `frame` at an address that is a multiple of 8, plus `offset`.
[[nodiscard]] received_bytes receive(std::span<const std::byte> frame, size_t offset = 0);

/// `message` as another process would get it. Fails the test if the frame is refused.
template <class T>
[[nodiscard]] msg<T> send_and_receive(const msg<T>& message) {
  return decode<T>(receive(flatten(frame(message).value()))).value();
}

} // namespace troupe
