// SPDX-License-Identifier: Apache-2.0
// Reads the four files of a data set, and checks that they belong together.
#include "tools/images/image_set.hpp"

#include "kernels/tensor/crc32c.hpp"
#include "strategies/data/idx_file.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

/// The bytes of an IDX file, and the dimensions of one of its rows.
struct byte_rows {
  std::vector<uint8_t> bytes;
  shape row;
};

tl::unexpected<error> refuse(const std::filesystem::path& path, std::string_view reason) {
  return fail(errc::invalid_argument, fmt::format("{} {}", path.string(), reason));
}

expected<dataset> open_rows(const std::filesystem::path& path) {
  auto file = input_file::open(path);
  if (!file) return tl::unexpected(file.error());
  if (file->bytes() > image_file_bytes_max)
    return fail(errc::limit_exceeded,
                fmt::format("{} has {} bytes, and {} are the most", path.string(), file->bytes(),
                            image_file_bytes_max));
  return idx_dataset(*file);
}

/// Reads all rows of a file. @param rank Dimensions of a row. @param content Names rows in errors.
expected<byte_rows> read_rows(const std::filesystem::path& path, const dataset& rows, size_t rank,
                              std::string_view content) {
  byte_rows result;
  auto reading = rows.iterate();
  for (auto next = reading.next();; next = reading.next()) {
    if (!next) return tl::unexpected(next.error());
    if (!*next) break;
    const auto& row = (*next)->tensors.front();
    if (row.rank() != rank || row.type() != dtype::i32)
      return refuse(path, fmt::format("does not hold {}", content));
    if (row.element_count() == 0) break; // a short file may hold 2^32 rows of nothing
    if (result.bytes.empty()) result.bytes.reserve(rows.size() * row.element_count());
    for (auto value : row.values<int32_t>()) {
      if (value < 0 || value > 255)
        return refuse(path, fmt::format("holds {}, which is no byte", value));
      result.bytes.push_back(static_cast<uint8_t>(value));
    }
    result.row = row.extents();
  }
  if (result.bytes.empty()) return refuse(path, fmt::format("holds no {}", content));
  return result;
}

expected<labelled_images> read_part(const std::filesystem::path& folder, const std::string& name) {
  const auto images_path = folder / (name + "-images-idx3-ubyte");
  const auto labels_path = folder / (name + "-labels-idx1-ubyte");
  auto image_rows = open_rows(images_path);
  if (!image_rows) return tl::unexpected(image_rows.error());
  auto images = read_rows(images_path, *image_rows, 2, "images of bytes");
  if (!images) return tl::unexpected(images.error());
  auto label_rows = open_rows(labels_path);
  if (!label_rows) return tl::unexpected(label_rows.error());
  if (image_rows->size() != label_rows->size())
    return refuse(labels_path,
                  fmt::format("has {} labels, but {} has {} images", label_rows->size(),
                              images_path.string(), image_rows->size()));
  auto labels = read_rows(labels_path, *label_rows, 0, "labels of a byte");
  if (!labels) return tl::unexpected(labels.error());
  return labelled_images{static_cast<size_t>(images->row[0]), static_cast<size_t>(images->row[1]),
                         std::move(images->bytes), std::move(labels->bytes)};
}

} // namespace

expected<image_set> load_images(const std::filesystem::path& folder) {
  auto training = read_part(folder, "train");
  if (!training) return tl::unexpected(training.error());
  auto held_out = read_part(folder, "t10k");
  if (!held_out) return tl::unexpected(held_out.error());
  if (training->height != held_out->height || training->width != held_out->width)
    return refuse(folder, fmt::format("has images of {} x {} to train on, but of {} x {} held out",
                                      training->height, training->width, held_out->height,
                                      held_out->width));
  const auto [lowest, highest_trained] = std::ranges::minmax(training->labels);
  if (lowest == highest_trained)
    return refuse(folder, "has one label only: there is nothing to tell apart");
  const auto classes = size_t{1} + highest_trained;
  const auto highest = *std::ranges::max_element(held_out->labels);
  if (highest >= classes)
    return refuse(folder, fmt::format("has a held-out image with the label {}, but the highest to "
                                      "train on is {}",
                                      highest, classes - 1));
  return image_set{std::move(*training), std::move(*held_out), classes};
}

std::string fingerprint(const image_set& images) {
  uint32_t sum = 0;
  for (const auto* part : {&images.training, &images.held_out})
    for (const auto* bytes : {&part->pixels, &part->labels})
      sum = cpu::crc32c(std::as_bytes(std::span{*bytes}), sum);
  return fmt::format("{} and {} images of {} x {}, crc32c {:08x}", images.training.size(),
                     images.held_out.size(), images.training.height, images.training.width, sum);
}

} // namespace troupe
