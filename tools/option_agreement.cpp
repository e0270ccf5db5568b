// SPDX-License-Identifier: Apache-2.0
// Options as lines, and the first of them that differs.
#include "tools/option_agreement.hpp"

#include "actors/failure.hpp"
#include "strategies/gathered_texts.hpp"
#include "tools/option_table.hpp"
#include "tools/option_value.hpp"
#include "tools/saved_job.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string>

namespace troupe {

namespace {

constexpr std::array<std::string_view, 5> own_matters{"text", "resume", "run-dir", "metrics-port",
                                                      "metrics-address"};

std::string lines_of(const train_options& options, const text_corpus& corpus) {
  auto lines = "a text of " + fingerprint(corpus) + '\n';
  for (const auto& option : train_option_table())
    if (std::ranges::count(own_matters, option.key) == 0)
      lines += fmt::format("{} = {}\n", option.key, toml_text(option, options));
  return lines;
}

// The line of a text that a place in it belongs to.
std::string line_at(const std::string& text, size_t place) {
  auto begin = place == 0 ? 0 : text.rfind('\n', place - 1) + 1; // npos + 1 is 0
  return text.substr(begin, text.find('\n', place) - begin);
}

} // namespace

void check_same_options(strategy& strategy, const train_options& options,
                        const text_corpus& corpus) {
  auto texts = gather_texts(strategy, "options", lines_of(options, corpus));
  const auto& first = texts.front();
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == first) continue;
    auto place = static_cast<size_t>(std::ranges::mismatch(first, texts[rank]).in1 - first.begin());
    const auto& names = strategy.layout().group->names;
    throw failure{
      {errc::failed_precondition,
       fmt::format("{} has {}, {} has {}; start all processes with the same options", names[rank],
                   line_at(texts[rank], place), names[0], line_at(first, place))}};
  }
}

} // namespace troupe
