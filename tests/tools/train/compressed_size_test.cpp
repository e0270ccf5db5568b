// SPDX-License-Identifier: Apache-2.0
// Goal: our sizes are those that a user measures with the commands. Method: compare with gzip and
// xz where the machine has them; known extremes where not.
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tools/train/compressed_size.hpp"

#include <cmath>
#include <optional>
#include <random>

namespace compressed_size_test {

namespace {

using namespace troupe;

// Bytes of the text as the command compresses it; nothing if there is no such command.
std::optional<uint64_t> size_by_command(const std::string& command, const std::string& text) {
  test::scratch_folder folder;
  test::write(folder / "text", text);
  const auto line = command + " -c < " + (folder / "text").string() + " > "
                    + (folder / "out").string() + " 2>/dev/null";
  if (std::system(line.c_str()) != 0) return std::nullopt;
  return std::filesystem::file_size(folder / "out");
}

std::string prose() {
  std::string text;
  std::mt19937 random{5};
  const char* words[]
    = {"the ", "program ", "free ", "software ", "copy ", "licence ", "of ", "any "};
  while (text.size() < 30'000)
    text += words[random() % 8];
  return text;
}

} // namespace

TEST_SUITE("tools/train/compressed_size") {
  TEST_CASE("agrees with the gzip command within one part in a hundred") {
    const auto size = gzip_bytes(prose());
    REQUIRE(size);
    const auto command = size_by_command("gzip -9", prose());
    if (!command) return;
    const auto difference = std::abs(static_cast<double>(*size) - static_cast<double>(*command));
    CHECK(difference <= 0.01 * static_cast<double>(*command));
  }

  TEST_CASE("agrees with the xz command to the byte") {
    const auto size = xz_bytes(prose());
    REQUIRE(size);
    const auto command = size_by_command("xz -6 -T1", prose());
    if (!command) return;
    CHECK(*size == *command);
  }

  TEST_CASE("makes nothing of repetition, and cannot shrink noise") {
    const std::string same(1'000'000, 'a');
    std::string noise(100'000, ' ');
    std::mt19937 random{3};
    for (char& letter : noise)
      letter = static_cast<char>(random());
    for (auto* size_of : {gzip_bytes, xz_bytes}) {
      CHECK(size_of(same).value() < 2'000);
      CHECK(size_of(noise).value() > 100'000);
      CHECK(size_of(noise).value() < 101'000);
    }
  }

  TEST_CASE("counts the headers of an empty text") {
    CHECK(gzip_bytes("").value() == 20);
    CHECK(xz_bytes("").value() == 32);
  }
}

} // namespace compressed_size_test
