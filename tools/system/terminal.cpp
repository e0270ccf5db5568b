// SPDX-License-Identifier: Apache-2.0
// Asks the system for the kind and the size of a terminal.
#include "tools/system/terminal.hpp"

#include <cstdlib>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace troupe {

bool is_terminal(int descriptor) {
  const char* kind = std::getenv("TERM");
  const bool is_dumb = kind == nullptr || std::string_view{kind} == "dumb";
  return ::isatty(descriptor) == 1 && !is_dumb;
}

size_t terminal_width(int descriptor) {
  constexpr size_t usual_width = 80;
  winsize size{};
  const bool answered = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return answered ? size.ws_col : usual_width;
}

size_t terminal_height(int descriptor) {
  constexpr size_t usual_height = 24;
  winsize size{};
  const bool answered = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
  return answered ? size.ws_row : usual_height;
}

} // namespace troupe
