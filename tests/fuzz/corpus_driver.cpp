// SPDX-License-Identifier: Apache-2.0
// Goal: fuzz targets and their corpora do not rot between two runs of ./dev fuzz. Method: gives a
// target each file of its corpus, and each beginning of it; files "refused-*" must be refused, all
// others accepted. Usage: PROGRAM FOLDER
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/scratch_folder.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

namespace {

bool is_right(const std::filesystem::path& path) {
  auto text = troupe::test::content(path);
  auto bytes = std::as_bytes(std::span{text});
  auto accepted = troupe::fuzz::accepts(bytes);
  auto wanted = !path.filename().string().starts_with("refused-");
  if (accepted != wanted)
    std::printf("%s: is %s\n", path.c_str(), accepted ? "accepted" : "refused");
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A copy, so that the address sanitizer sees reads beyond the end.
    std::vector<std::byte> beginning{bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)};
    static_cast<void>(troupe::fuzz::accepts(beginning));
  }
  return accepted == wanted;
}

} // namespace

int main(int argument_count, char** arguments) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator{argument_count > 1 ? arguments[1] : "."})
    files.push_back(entry.path());
  std::ranges::sort(files);
  auto wrong = std::ranges::count_if(files, [](const auto& path) { return !is_right(path); });
  std::printf("%zu files, %td not as they must be\n", files.size(), wrong);
  return files.empty() || wrong > 0 ? 1 : 0;
}
