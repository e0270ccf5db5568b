// SPDX-License-Identifier: Apache-2.0
// Windows that slide over images: the geometry that convolution and pooling share.
#pragma once

#include <cstddef>

namespace troupe {

/// Largest number of elements in an array of a convolution or a pooling.
inline constexpr size_t image_elements_max = 0x7fffffff;

/// Windows over a batch of images that lie pixel by pixel, the channels of a pixel side by side
/// (NHWC): a bias for each channel is then `add_bias`, and a loop over channels reads memory in
/// order. A window takes in only those of its pixels that lie within the image; the padding around
/// the image has no memory.
/// @pre The stride is at least 1, the padding is smaller than each side of a window, and a window
/// is no larger than the padded image.
struct image_windows {
  size_t batch = 0;         ///< Images.
  size_t height = 1;        ///< Rows of an image.
  size_t width = 1;         ///< Pixels of a row.
  size_t channels = 1;      ///< Numbers of a pixel.
  size_t window_height = 1; ///< Rows of a window.
  size_t window_width = 1;  ///< Pixels of a window's row.
  size_t stride = 1;        ///< Pixels from one window to the next, in both directions.
  size_t padding = 0;       ///< Pixels that are added on each of the four sides.

  [[nodiscard]] constexpr size_t output_height() const {
    return (height + 2 * padding - window_height) / stride + 1;
  }

  [[nodiscard]] constexpr size_t output_width() const {
    return (width + 2 * padding - window_width) / stride + 1;
  }

  /// Pixels of all images.
  [[nodiscard]] constexpr size_t pixels() const { return batch * height * width; }

  /// Windows over all images.
  [[nodiscard]] constexpr size_t windows() const {
    return batch * output_height() * output_width();
  }

  static constexpr size_t no_pixel = static_cast<size_t>(-1);

  /// [begin, end)
  struct range {
    size_t begin;
    size_t end;
  };

  /// The rows of an image that windows in row `y` of the output take in.
  [[nodiscard]] constexpr range rows_of(size_t y) const {
    return pixels_in(y, window_height, height);
  }

  /// The columns of an image that windows in column `x` of the output take in.
  [[nodiscard]] constexpr range columns_of(size_t x) const {
    return pixels_in(x, window_width, width);
  }

  /// The pixel at `offset` of a window, among all pixels; `no_pixel` where the padding is.
  [[nodiscard]] constexpr size_t pixel_of(size_t window, size_t offset) const {
    const auto row = window / output_width() % output_height() * stride + offset / window_width;
    const auto column = window % output_width() * stride + offset % window_width;
    if (!is_within(row, column)) return no_pixel;
    const auto image = window / output_width() / output_height();
    return (image * height + row - padding) * width + column - padding;
  }

  /// Calls `body(pixel, offset)` for each pixel of a window that lies within the image, row by row;
  /// `offset` is the pixel's position in the window.
  template <class Body>
  constexpr void for_pixels_of(size_t window, Body body) const {
    const auto y = window / output_width() % output_height();
    const auto x = window % output_width();
    const auto image = window / output_width() / output_height();
    const auto rows = rows_of(y), columns = columns_of(x);
    for (size_t row = rows.begin; row < rows.end; ++row)
      for (size_t column = columns.begin; column < columns.end; ++column)
        body((image * height + row) * width + column,
             (row + padding - y * stride) * window_width + column + padding - x * stride);
  }

  /// Calls `body(window, offset)` for each window that takes in a pixel, in the order of windows;
  /// `offset` is the pixel's position in the window.
  template <class Body>
  constexpr void for_windows_over(size_t pixel, Body body) const {
    const auto column = pixel % width;
    const auto row = pixel / width % height;
    const auto image = pixel / width / height;
    const auto rows = windows_over(row + padding, window_height, output_height());
    const auto columns = windows_over(column + padding, window_width, output_width());
    for (size_t y = rows.begin; y < rows.end; ++y)
      for (size_t x = columns.begin; x < columns.end; ++x)
        body((image * output_height() + y) * output_width() + x,
             (row + padding - y * stride) * window_width + column + padding - x * stride);
  }

private:
  /// Whether a position of the padded image is one of the image.
  [[nodiscard]] constexpr bool is_within(size_t row, size_t column) const {
    return row >= padding && row < height + padding && column >= padding
           && column < width + padding;
  }

  /// Pixels, out of `count` in a line, that window `at` of the line takes in.
  [[nodiscard]] constexpr range pixels_in(size_t at, size_t window, size_t count) const {
    const auto begin = at * stride, end = begin + window;
    return {begin < padding ? 0 : begin - padding, end < count + padding ? end - padding : count};
  }

  /// Windows, out of `count` in a line, that take in position `at` of the padded image.
  [[nodiscard]] constexpr range windows_over(size_t at, size_t window, size_t count) const {
    const auto begin = at < window ? 0 : (at - window) / stride + 1;
    const auto end = at / stride + 1;
    return {begin, end < count ? end : count};
  }
};

} // namespace troupe
