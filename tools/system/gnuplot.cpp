// SPDX-License-Identifier: Apache-2.0
// Draws in a folder beside the scripts, and moves the pictures that are whole.
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

expected<void> move_picture(const std::filesystem::path& drawn,
                            const std::filesystem::path& picture) {
  if (!is_whole(drawn))
    return fail(errc::resource, fmt::format("gnuplot has not written all of {}; is the disk full?",
                                            picture.native()));
  std::error_code refused;
  std::filesystem::rename(drawn, picture, refused);
  if (!refused) return {};
  return fail(errc::resource,
              fmt::format("cannot create {}: {}", picture.native(), refused.message()));
}

} // namespace

expected<void> draw_pictures(const std::filesystem::path& folder,
                             std::span<const std::string> names,
                             std::chrono::milliseconds timeout) {
  const auto unfinished = folder / "pictures.new";
  std::error_code refused;
  std::filesystem::create_directory(unfinished, refused);
  if (refused)
    return fail(errc::resource,
                fmt::format("cannot create {}: {}", unfinished.native(), refused.message()));
  // Scripts name the files that they read without a folder.
  std::vector<std::string> words{"gnuplot", "-e", "set loadpath '..'"};
  for (const auto& name : names)
    words.push_back("../" + name + ".gp");
  auto done = run({std::move(words), unfinished, timeout});
  for (const auto& name : names) {
    const auto picture = name + ".svg";
    if (done) done = move_picture(unfinished / picture, folder / picture);
    std::filesystem::remove(unfinished / picture, refused);
  }
  std::filesystem::remove(unfinished, refused);
  return done;
}

} // namespace troupe
