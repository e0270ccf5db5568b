// SPDX-License-Identifier: Apache-2.0
// The context of the cuda twins: a stream of one GPU, and memory that is used over and over.
#pragma once

#include "kernels/cuda/stream.hpp"
#include "kernels/tensor/buffer.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errors/errc.hpp"

#include <cstddef>
#include <memory>
#include <optional>

struct cublasContext;

namespace troupe::cuda {

/// A twin of namespace `cuda` queues its work on the context's stream and returns before it is
/// done. Arrays are memory of the context's device; spans that describe others (lists of sources,
/// slots) are memory of the host and read before the call returns.
///
/// A kernel cannot return an error, and a caller that queues a thousand of them does not want to
/// look a thousand times. So a context keeps the first failure, does nothing after it, and hands it
/// out at the end: `synchronise`.
///
/// Functions that return a number (norms, sums, counts) wait for the stream; after a failure they
/// return NaN, or 0 for a count.
///
/// A handle: copies are the same context. The last one waits for nothing: what the stream may still
/// use is kept until it is done, and given back when some context is made, ends or looks for memory
/// after that; never, if the device is lost. Thread: one at a time.
class context {
public:
  /// Errors: not_found if there is no such device, resource, unavailable.
  [[nodiscard]] static expected<context> create(int device_index);

  [[nodiscard]] troupe::device device() const;

  [[nodiscard]] const cuda::stream& stream() const;

  /// Where tensors and workspaces on the device come from, but while a graph is written. Blocks
  /// that are freed serve later work of this stream; see `device_memory`.
  [[nodiscard]] buffer_pool& memory() const;

  /// Pinned memory of the host.
  [[nodiscard]] buffer_pool& host_memory() const;

  /// An uninitialised tensor on the device. If there is no memory for it, the context has failed
  /// and the tensor has no elements (shape [0]).
  [[nodiscard]] tensor make(dtype type, shape extents) const;

  /// Memory of the device for as long as a call lasts; null after a failure. Before it gives up,
  /// all contexts of the device let go of what they keep for their next work.
  [[nodiscard]] std::shared_ptr<std::byte> workspace(size_t bytes) const;

  /// Pinned memory of the host for as long as a call lasts; null after a failure.
  [[nodiscard]] std::shared_ptr<std::byte> host_workspace(size_t bytes) const;

  /// Queues a copy of the host's memory to the device, and has read it before this returns; but
  /// pinned memory must stay as it is until the context has synchronised. Other memory goes by way
  /// of pinned memory, while there is some: CUDA may keep the host waiting for the stream
  /// otherwise, and nothing overlaps such a copy.
  void copy_from_host(const void* from, void* to, size_t bytes) const;

  /// Takes memory of the device from another pool from now on; from its own again, if there is
  /// none. For graphs: no other work may have a graph's memory. @returns The pool until now.
  std::optional<buffer_pool> take_memory_from(std::optional<buffer_pool> pool) const;

  /// Keeps memory until all that is queued here now is done, and waits for nothing.
  void keep_until_done(buffer_pool memory) const;

  /// Keeps the failure, if it is the first one. @returns Whether all is well so far.
  bool note(const expected<void>& done) const;

  /// Goes on in spite of a failure, unless the device is lost: for a caller that knows that nothing
  /// was done since then, and nothing has to be.
  void forgive() const;

  /// The first failure so far, without waiting.
  [[nodiscard]] expected<void> status() const;

  /// Publishes the work that is queued here now: other contexts of the device that `catch_up` after
  /// this do their later work after it. So memory that one context writes is read by others, and no
  /// host waits.
  void publish() const;

  /// Work that is queued here from now on runs after all work that was published on the device.
  /// Cost: nothing, if nothing was published since the last call.
  void catch_up() const;

  /// Waits for all queued work. Errors: the first failure; resource if memory ran out, unavailable
  /// if the device is lost.
  [[nodiscard]] expected<void> synchronise() const;

  /// cuBLAS on this stream, in full precision unless a call says otherwise, and without atomic
  /// additions; made at the first call.
  /// Null after a failure; resource if the library is not installed.
  [[nodiscard]] cublasContext* blas() const;

private:
  struct state;
  class register_of_all;

  [[nodiscard]] expected<void> try_blas() const;

  explicit context(std::shared_ptr<state> given) : state_(std::move(given)) {}

  std::shared_ptr<state> state_;
};

/// A copy on the context's device, row by row; queued, and the source's memory read, before it
/// returns, but for pinned memory, which must stay as it is until the context has synchronised.
/// Errors: as `context::synchronise`.
[[nodiscard]] expected<tensor> to_device(const context& on, const tensor& from);

/// A copy in pinned memory of the host; waits until it is there.
/// @pre The tensor is contiguous.
/// Errors: as `context::synchronise`.
[[nodiscard]] expected<tensor> to_host(const context& on, const tensor& from);

/// Waits for numbers that lie on the device. They are NaN after a failure.
void fetch(const context& on, const double* numbers, std::span<double> into);

/// Waits for one number.
[[nodiscard]] double fetch(const context& on, const double* number);

} // namespace troupe::cuda
