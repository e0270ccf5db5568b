// SPDX-License-Identifier: Apache-2.0
// A folder for the files of one test, gone when the test is over.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

namespace troupe::test {

/// An empty folder of its own for each object, so that tests can run side by side.
class scratch_folder {
public:
  scratch_folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "troupe-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }

  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  ~scratch_folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  /// Where the folder lies.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// A path inside the folder.
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const {
    return path_ / name;
  }

private:
  std::filesystem::path path_;
};

/// The whole content of a file; empty if it cannot be read.
inline std::string content(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// Makes a file with this content.
inline void write(const std::filesystem::path& path, std::string_view text) {
  std::ofstream{path, std::ios::binary} << text;
}

} // namespace troupe::test
