// SPDX-License-Identifier: Apache-2.0
// The records of a TFRecord file as a dataset.
#pragma once

#include "actors/recording/input_file.hpp"
#include "strategies/data/dataset.hpp"

#include <filesystem>

namespace troupe {

/// One element for each record: its bytes as a text, often a `tf.train.Example` that `map` decodes.
/// Uncompressed files only.
/// Cost: one small read for each record when the file is opened; then one for each element.
/// Errors: throws `failure`: those of `input_file::open`; `malformed` with the byte where a frame
/// is cut or its length is damaged. A damaged record fails when it is read.
[[nodiscard]] dataset tfrecord_file(const std::filesystem::path& path);

/// The same for an open file, or bytes in memory. Errors: as `tfrecord_file`.
[[nodiscard]] expected<dataset> tfrecord_dataset(const input_file& file);

} // namespace troupe
