// SPDX-License-Identifier: Apache-2.0
// Tensors in safetensors files, which other tools read, too.
#pragma once

#include "actors/checkpoint/safetensors_header.hpp"
#include "kernels/tensor/tensor.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// A tensor under the name that it has in a file.
struct named_tensor {
  std::string name;
  tensor value;
};

/// The tensors and the metadata of a safetensors file.
struct safetensors_content {
  std::vector<named_tensor> tensors; ///< As the header lists them; each has memory of its own.
  safetensors_metadata metadata;     ///< Without our checksum.
  bool has_checksum = false;         ///< True for our files; a wrong checksum is an error.
};

/// Writes a file of tensors. A job that is killed while it writes must leave the former file, or
/// the new one whole. So the bytes go to a file beside it, ".NAME.partial"; the disk confirms them;
/// then the file takes its name, and the disk confirms that. A checksum covers all bytes.
///
/// The header lists the tensors in the order given; their bytes lie by size of element, so that
/// each is aligned for its type in a mapped file.
/// Cost: one pass over the tensors (a row-major copy of those that are not), two waits for the
/// disk.
/// Errors: `invalid_argument` (a name that is taken twice, reserved or not UTF-8),
/// `limit_exceeded`; `resource` with the path and the system's reason. No file is left behind.
[[nodiscard]] expected<void> write_safetensors(const std::filesystem::path& path,
                                               std::span<const named_tensor> tensors,
                                               const safetensors_metadata& metadata = {});

/// Reads a file of ours or of another tool. A checksum, if there is one, is checked, and so is
/// everything else in the file.
/// Cost: one pass; memory for the tensors, from `cpu_pool()`.
/// Errors: `not_found`; `malformed` with the file, and the tensor or the byte where it is wrong;
/// `resource`; `invalid_argument` for a folder.
[[nodiscard]] expected<safetensors_content> read_safetensors(const std::filesystem::path& path);
[[nodiscard]] expected<safetensors_content> read_safetensors(const input_file& file);

} // namespace troupe
