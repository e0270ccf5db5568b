// SPDX-License-Identifier: Apache-2.0
// Options as lines, and the first of them that differs.
#include "tools/option_agreement.hpp"

#include "actors/failure.hpp"
#include "tools/option_table.hpp"
#include "tools/option_value.hpp"
#include "tools/saved_job.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string>
#include <vector>

namespace troupe {

namespace {

constexpr std::array<std::string_view, 5> own_matters{"text", "resume", "run-dir", "metrics-port",
                                                      "metrics-address"};
constexpr int64_t end_of_lines = 0;

std::vector<std::string> lines_of(const train_options& options, const text_corpus& corpus) {
  std::vector<std::string> lines{"a text of " + fingerprint(corpus)};
  for (const auto& option : train_option_table())
    if (std::ranges::count(own_matters, option.key) == 0)
      lines.push_back(fmt::format("{} = {}", option.key, toml_text(option, options)));
  return lines;
}

// Letters as numbers, since no array has bytes.
tensor sent(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines)
    text += line + '\n';
  tensor result{dtype::i64, {static_cast<int64_t>(text.size()) + 1}};
  auto letters = result.mutable_values<int64_t>();
  std::ranges::transform(text, letters.begin(),
                         [](char letter) { return static_cast<unsigned char>(letter); });
  letters.back() = end_of_lines;
  return result;
}

std::vector<std::vector<std::string>> received(const tensor& all) {
  std::vector<std::vector<std::string>> processes{{}};
  std::string line;
  for (auto letter : all.values<int64_t>()) {
    if (letter == end_of_lines)
      processes.emplace_back();
    else if (letter == '\n')
      processes.back().push_back(std::exchange(line, {}));
    else
      line += static_cast<char>(letter);
  }
  processes.pop_back();
  return processes;
}

} // namespace

void check_same_options(strategy& strategy, const train_options& options,
                        const text_corpus& corpus) {
  const auto& group = strategy.layout().group;
  if (!group) return;
  auto own = sent(lines_of(options, corpus));
  auto all = strategy.cross_replica([own](cross_replica_context& context) {
    auto work = [own](process_exchange* exchange) { return exchange->gather({&own, 1}); };
    return context.exchanged("options", 0, work);
  });
  auto processes = received(all);
  const auto& first = processes.front();
  for (size_t rank = 1; rank < processes.size(); ++rank) {
    auto [one, other] = std::ranges::mismatch(first, processes[rank]);
    if (one == first.end() || other == processes[rank].end()) continue;
    throw failure{{errc::failed_precondition,
                   fmt::format("{} has {}, {} has {}; start all processes with the same options",
                               group->names[rank], *other, group->names[0], *one)}};
  }
}

} // namespace troupe
