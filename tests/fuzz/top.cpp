// SPDX-License-Identifier: Apache-2.0
// A server's answer at /metrics and, behind an empty line, at /actors, as `troupe top` shows
// it. Whatever it is, the page fits its window and sends nothing but letters to the terminal.
#include "messages/errors/assert.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tools/top/view.hpp"

#include <algorithm>

namespace troupe::fuzz {

bool accepts(std::span<const std::byte> input) {
  auto text = text_of(input);
  auto end = std::min(text.find("\n\n"), text.size());
  auto sample = read_top_sample(text.substr(0, end), text.substr(std::min(end + 2, text.size())));
  if (!sample) return false;
  constexpr top_window window{.width = 40, .height = 6};
  auto page = top_page("here:1", *sample, std::nullopt, window);
  auto is_control = [](char letter) { return letter != '\n' && letter >= 0 && letter < ' '; };
  TROUPE_ASSERT(std::ranges::count(page, '\n') <= 6, page);
  TROUPE_ASSERT(std::ranges::none_of(page, is_control), page);
  for (size_t at = 0; at < page.size(); at = page.find('\n', at) + 1)
    TROUPE_ASSERT(page.find('\n', at) - at <= window.width, page);
  return true;
}

} // namespace troupe::fuzz
