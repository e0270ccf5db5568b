// SPDX-License-Identifier: Apache-2.0
// Visiting everything in a message once, so that no later access can meet a fault.
#pragma once

#include "messages/errors/errc.hpp"

#include <capnp/dynamic.h>
#include <kj/exception.h>

#include <string>

namespace troupe {

/// Cap'n Proto finds a malformed pointer only when code follows it, and then throws; but while
/// a listener like this one lives, it tells the listener instead and goes on with a default value,
/// which is much cheaper and lets the caller decide. It must live on the stack. Thread: hears the
/// faults of its own thread only.
class fault_listener final : public kj::ExceptionCallback {
public:
  void onRecoverableException(kj::Exception&& fault) override;

  StackTraceMode stackTraceMode() override { return StackTraceMode::NONE; }

  /// Remembers `fault` as if it had been heard.
  void hear(const kj::Exception& fault);

  [[nodiscard]] bool heard_any() const { return heard_; }

  /// The description of the first fault.
  [[nodiscard]] const std::string& first() const { return first_; }

private:
  bool heard_ = false;
  std::string first_;
};

/// Reads every field that `root` has set, to any depth, and checks what holds for all messages: the
/// sizes of lists, texts and blobs, and that enumerators are known. Unions with an active member
/// that is unknown are passed over, for `check_rules` to refuse.
/// Errors: malformed, also for everything that `listener` has heard before or meanwhile;
/// limit_exceeded.
[[nodiscard]] expected<void> walk(capnp::DynamicStruct::Reader root,
                                  const fault_listener& listener);

} // namespace troupe
