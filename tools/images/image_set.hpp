// SPDX-License-Identifier: Apache-2.0
// Reads labelled images from a folder of IDX files, such as MNIST.
#pragma once

#include "messages/errors/errc.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Grey images, each with the class that it belongs to.
struct labelled_images {
  size_t height = 0;
  size_t width = 0;
  std::vector<uint8_t> pixels; ///< Image by image, row by row; 255 is the brightest.
  std::vector<uint8_t> labels; ///< One for each image.

  [[nodiscard]] size_t size() const { return labels.size(); }

  [[nodiscard]] std::span<const uint8_t> image(size_t index) const {
    return std::span{pixels}.subspan(index * height * width, height * width);
  }
};

/// A data set, read once and held in memory.
struct image_set {
  labelled_images training;
  labelled_images held_out;
  size_t classes = 0; ///< One more than the highest label of the training images.
};

/// Longer files are refused: they would not fit beside the model in the memory of an ordinary
/// machine.
inline constexpr uint64_t image_file_bytes_max = uint64_t{1} << 30;

/// Reads `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and
/// `t10k-labels-idx1-ubyte`, the names of MNIST's files; the last two are held out.
/// Errors: as `idx_file` for files that are missing, cut off or of another format;
/// invalid_argument for files that do not belong together, `limit_exceeded`. The line names the
/// file.
[[nodiscard]] expected<image_set> load_images(const std::filesystem::path& folder);

/// Identifies a data set by its sizes and its checksum, in a few words.
[[nodiscard]] std::string fingerprint(const image_set& images);

} // namespace troupe
