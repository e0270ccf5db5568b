// SPDX-License-Identifier: Apache-2.0
// Goal: a data set is read as it stands in its files, and files that do not belong together are
// refused in one line that names the file. Method: sets of a few pixels, each wrong in one way.
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tools/images/image_set.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

namespace image_set_test {

namespace {

using namespace troupe;

std::string idx(std::initializer_list<int> dims, std::string_view numbers, char type = 8) {
  std::string file{'\0', '\0', type, static_cast<char>(dims.size())};
  for (int dim : dims)
    file.append({'\0', '\0', '\0', static_cast<char>(dim)});
  return file.append(numbers);
}

/// Three images of 1 x 2 pixels to train on, one held out.
struct small_set : test::scratch_folder {
  small_set() {
    put("train-images-idx3-ubyte", idx({3, 1, 2}, "ABCDE\xff"));
    put("train-labels-idx1-ubyte", idx({3}, std::string_view{"\2\0\1", 3}));
    put("t10k-images-idx3-ubyte", idx({1, 1, 2}, "FG"));
    put("t10k-labels-idx1-ubyte", idx({1}, "\2"));
  }

  void put(std::string_view name, std::string_view content) const {
    test::write(*this / name, content);
  }

  [[nodiscard]] std::string complaint() const {
    auto refused = load_images(path());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find('\n') == std::string::npos);
    return refused.error().message;
  }

  /// Checks the refusal of a folder in which one file has other content.
  void refuses(std::string_view name, std::string_view content, std::string_view wanted) const {
    const auto before = test::content(*this / name);
    put(name, content);
    const auto line = complaint();
    CHECK_MESSAGE(line.find(wanted) != std::string::npos, line);
    CHECK_MESSAGE(line.find(path().string()) != std::string::npos, line);
    put(name, before);
  }
};

} // namespace

TEST_SUITE("tools/images/image_set") {
  TEST_CASE("reads images, labels, and how many classes there are") {
    const small_set folder;
    const auto images = load_images(folder.path());
    REQUIRE_MESSAGE(images, (images ? "" : images.error().message));
    CHECK(images->classes == 3);
    CHECK(images->training.height == 1);
    CHECK(images->training.width == 2);
    CHECK(images->training.size() == 3);
    CHECK(images->training.labels == std::vector<uint8_t>{2, 0, 1});
    CHECK(std::ranges::equal(images->training.image(2), std::vector<uint8_t>{'E', 255}));
    CHECK(images->held_out.pixels == std::vector<uint8_t>{'F', 'G'});
  }

  TEST_CASE("other images and other labels have another fingerprint") {
    const small_set folder;
    const auto before = fingerprint(*load_images(folder.path()));
    CHECK(before.find("3 and 1 images of 1 x 2, crc32c ") == 0);
    folder.put("t10k-labels-idx1-ubyte", idx({1}, "\1"));
    const auto labels = fingerprint(*load_images(folder.path()));
    folder.put("t10k-images-idx3-ubyte", idx({1, 1, 2}, "FH"));
    const auto pixels = fingerprint(*load_images(folder.path()));
    CHECK(labels != before);
    CHECK(pixels != labels);
  }

  TEST_CASE("refuses files that are missing, compressed, cut off, or of another format") {
    const small_set folder;
    folder.refuses("train-images-idx3-ubyte",
                   "\x1f\x8b"
                   "12345",
                   "unpack it with gunzip first");
    folder.refuses("train-images-idx3-ubyte", "images", "this does not begin an IDX file");
    folder.refuses("train-images-idx3-ubyte", idx({3, 1, 2}, "ABCDE"), "5 bytes follow");
    folder.refuses("train-labels-idx1-ubyte", idx({3}, "ab"), "2 bytes follow");
    std::filesystem::remove(folder / "t10k-labels-idx1-ubyte");
    CHECK(folder.complaint().find("t10k-labels-idx1-ubyte: No such file") != std::string::npos);
  }

  TEST_CASE("refuses what are no images of bytes, and no labels") {
    const small_set folder;
    folder.refuses("train-images-idx3-ubyte", idx({3}, "ABC"), "does not hold images of bytes");
    folder.refuses("train-images-idx3-ubyte", idx({0, 1, 2}, ""), "holds no images of bytes");
    folder.refuses("train-images-idx3-ubyte", idx({3, 0, 2}, ""), "holds no images of bytes");
    folder.refuses("train-images-idx3-ubyte",
                   std::string{"\0\0\x08\x03\xff\xff\xff\xff\0\0\0\0\0\0\0\0", 16},
                   "holds no images of bytes");
    folder.refuses("train-labels-idx1-ubyte", idx({3, 1}, "abc"), "does not hold labels");
    folder.refuses("train-labels-idx1-ubyte", idx({3}, std::string_view{"\0\1\xff", 3}, 9),
                   "holds -1, which is no byte");
    folder.refuses("train-labels-idx1-ubyte", idx({3}, std::string(12, '\0'), 13),
                   "does not hold labels");
  }

  TEST_CASE("refuses files that do not belong together") {
    const small_set folder;
    folder.refuses("train-labels-idx1-ubyte", idx({2}, std::string_view{"\0\1", 2}),
                   "train-labels-idx1-ubyte has 2 labels, but ");
    folder.refuses("t10k-images-idx3-ubyte", idx({1, 2, 1}, "FG"),
                   "has images of 1 x 2 to train on, but of 2 x 1 held out");
    for (std::string_view alike : {std::string_view{"\0\0\0", 3}, std::string_view{"\5\5\5"}})
      folder.refuses("train-labels-idx1-ubyte", idx({3}, alike), "has one label only");
    folder.refuses("t10k-labels-idx1-ubyte", idx({1}, "\3"),
                   "has a held-out image with the label 3, but the highest to train on is 2");
  }
}

} // namespace image_set_test
