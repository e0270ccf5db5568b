// SPDX-License-Identifier: Apache-2.0
// A message between actors of Troupe, in one process or across many.
#pragma once

#include "messages/body.hpp"
#include "messages/message_storage.hpp"

#include <memory>

namespace troupe {

/// Actors share no memory but what they tell each other, and a gradient of 400 MB is told to
/// several actors at once. A `msg<T>` is therefore immutable and shared: a copy is one atomic
/// increment, and reading never copies. `T` is the struct that the schema defines:
/// `msg<wire::Token>`.
///
/// It owns either segments that were built here, together with the tensors they refer to, or the
/// buffer that a socket filled. A default-constructed message is empty: all its fields have their
/// defaults. Thread: every member may be called from any thread at any time.
template <class T>
class msg {
public:
  msg() = default;

  /// The message behind `storage`. @pre `storage->body` is a `T`: of the envelope's, or of a schema
  /// of one's own.
  explicit msg(std::shared_ptr<const message_storage> storage) : storage_(std::move(storage)) {}

  /// The fields. Lives as long as a copy of this message does.
  /// Cost: copies 48 bytes; nothing is parsed, checked or counted.
  [[nodiscard]] typename T::Reader reader() const {
    return storage_ ? storage_->body.as<T>() : typename T::Reader();
  }

  /// A share in the memory that readers and tensors of this message point into; null if empty.
  [[nodiscard]] const std::shared_ptr<const message_storage>& owner() const { return storage_; }

  [[nodiscard]] bool is_empty() const { return storage_ == nullptr; }

  /// The message is not needed any more: on its way to another node it may be dropped as long as it
  /// is not all there, and a request that it makes is then answered by `cancelled`. A receiver that
  /// has it already keeps it.
  void recall() const {
    if (storage_) storage_->recalled = true;
  }

  /// The same message, not just an equal one.
  bool operator==(const msg&) const = default;

private:
  std::shared_ptr<const message_storage> storage_;
};

} // namespace troupe
