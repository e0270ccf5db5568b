// SPDX-License-Identifier: Apache-2.0
// Runs gnuplot, and removes the pictures that it has cut off.
#include "tools/system/gnuplot.hpp"

#include "tools/system/child_process.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// gnuplot's exit code is 0 even if the disk is full.
bool is_whole(const std::filesystem::path& picture) {
  std::ifstream file{picture, std::ios::binary | std::ios::ate};
  const auto end_bytes = std::clamp<std::streamoff>(file.tellg(), 0, 64);
  std::string end(static_cast<size_t>(end_bytes), ' ');
  file.seekg(-end_bytes, std::ios::end);
  file.read(end.data(), end_bytes);
  return file && end.find("</svg>") != std::string::npos;
}

} // namespace

expected<void> draw_pictures(const std::filesystem::path& folder,
                             std::span<const std::string> names,
                             std::chrono::milliseconds timeout) {
  std::vector<std::string> words{"gnuplot"};
  for (const auto& name : names)
    words.push_back(name + ".gp");
  auto done = run({std::move(words), folder, timeout});
  for (const auto& name : names) {
    const auto picture = folder / (name + ".svg");
    if (is_whole(picture)) continue;
    if (done)
      done = fail(
        errc::resource,
        fmt::format("gnuplot has not written all of {}: the disk may be full", picture.native()));
    std::error_code ignored;
    std::filesystem::remove(picture, ignored);
  }
  return done;
}

} // namespace troupe
