// SPDX-License-Identifier: Apache-2.0
// A shared library that is loaded when it is first needed, so that a program starts without it.
#pragma once

#include "messages/errors/errc.hpp"

#include <string>

namespace troupe::cuda {

/// A library in this process. It is never unloaded: its threads, and what it gave out, may live
/// until the end of the process.
class loaded_library {
public:
  /// Looks for a file where the loader looks, then in a folder.
  /// @param called The library's name for people, which begins the error: "cuBLAS".
  /// @param folder The place of the library at compile time.
  /// Errors: resource; the line names the file that is missing.
  [[nodiscard]] static expected<loaded_library>
  open(const std::string& called, const std::string& file, const std::string& folder);

  /// Sets `found` to the function of this name. @returns Whether there is one.
  template <class Function>
  [[nodiscard]] bool find(const char* name, Function& found) const {
    found = reinterpret_cast<Function>(address_of(name));
    return found != nullptr;
  }

private:
  explicit loaded_library(void* handle) : handle_(handle) {}

  [[nodiscard]] void* address_of(const char* name) const;

  void* handle_;
};

} // namespace troupe::cuda
