// SPDX-License-Identifier: Apache-2.0
// A device that computes, as actors know it: its streams, copies, and its loss.
#pragma once

#include "kernels/math/sparse.hpp"
#include "kernels/tensor/buffer.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errors/errc.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

struct gradient_mean;
struct measured_mean;
struct update_plan;
struct variable_state;

/// Work on a device is begun by one processor and done by another. A stream is where it is begun:
/// what is asked of it returns at once and is done in that order, so a result may be handed on
/// within the stream, but looked at only when the stream has been waited for.
///
/// Thread: one at a time.
class compute_stream {
public:
  virtual ~compute_stream() = default;

  /// Where its results lie.
  [[nodiscard]] virtual troupe::device where() const = 0;

  /// The elements on the device; the same tensor if they lie there already. The host's are read
  /// before this returns, or kept alive; but pinned memory, as `to_host` gives it, has to stay as
  /// it is until the stream has come past this. Errors: resource, if the device has no memory left.
  [[nodiscard]] virtual expected<tensor> to_device(const tensor& value) = 0;

  /// Copies a value of the host to where another one lies on the device. @pre They are alike.
  /// Errors: as the device's.
  [[nodiscard]] virtual expected<void> copy_to_device(const tensor& value, tensor there) = 0;

  /// Copies values of the device to where others lie there, as one piece of work. @pre They are
  /// alike in pairs, row-major, and apart. Errors: as the device's.
  [[nodiscard]] virtual expected<void> copy_there(std::span<const tensor> values,
                                                  std::span<const tensor> there);

  /// The elements in memory of the host, row-major; the same tensor if they lie there already.
  [[nodiscard]] virtual expected<tensor> to_host(const tensor& value) = 0;

  /// Uninitialised memory of the host that the device copies to fastest: for callers that must not
  /// fail for want of it later. Errors: resource.
  [[nodiscard]] virtual expected<tensor> make_on_host(dtype type, const shape& extents) {
    return tensor{type, extents};
  }

  /// Copies a value of the device there. @pre They are alike; `there` is of `make_on_host`.
  [[nodiscard]] virtual expected<void> copy_to_host(const tensor& value, tensor there) = 0;

  /// An uninitialised tensor on the device. Errors: as `to_device`.
  [[nodiscard]] virtual expected<tensor> make(dtype type, const shape& extents) = 0;

  /// (((v0 + v1) + v2) + ...) / divisor, on the device; 16-bit types are worked out in f32 and
  /// rounded once.
  /// @param values Alike, at least one, row-major, on the device. @param divisor 1 for integers.
  /// Errors: as `to_device`; unimplemented for a dtype that the device does not add: all add
  /// floating ones (`adds_on_devices`).
  [[nodiscard]] virtual expected<tensor> sum(std::span<const tensor> values, double divisor = 1)
    = 0;

  /// The values behind each other along a dimension, on the device.
  /// @param values At least one, row-major, on the device; alike but for their extent there.
  /// @pre axis < rank. Errors: as `to_device`.
  [[nodiscard]] virtual expected<tensor> gather(std::span<const tensor> values, size_t axis) = 0;

  /// The rows of sparse gradients added up, one for each index, on the device; the bits are those
  /// of the owner's sum. Shape: result  [distinct, width]
  /// @param rows Values on the device, indices and order in the host's memory, where they have to
  /// stay until this returns. @param type f32 or f64. Errors: as `to_device`.
  [[nodiscard]] virtual expected<tensor> combine(const sparse_sum& rows, dtype type) = 0;

  /// As `troupe::prepare`, by the kernels of the device. @param variable Its arrays lie there.
  /// Errors: as `to_device`; unimplemented for a rule that the device has no code for.
  [[nodiscard]] virtual expected<void> prepare(variable_state& variable, const update_plan& plan)
    = 0;

  /// As `update_variable`, by the kernels of the device: one pass, queued. All that the parameters
  /// refer to stays as it is until the stream has come past this. @param variable As above,
  /// prepared.
  /// @param mean Arrays on the device; indices of rows in the host's memory. Errors: as
  /// `to_device`; throws what a program's rule throws.
  [[nodiscard]] virtual expected<void> update(variable_state& variable, const update_plan& plan,
                                              const gradient_mean& mean)
    = 0;

  /// Has `ask` ask for updates of several variables, which the device may do as one piece of work:
  /// until this returns, none of them may be looked at, or updated a second time.
  /// Errors: as `ask`, and as the device's.
  [[nodiscard]] virtual expected<void> update_together(const std::function<expected<void>()>& ask) {
    return ask();
  }

  /// As `troupe::squared_norms`; waits for the stream, once. Arrays lie as for `update`.
  /// Errors: as `to_device`.
  [[nodiscard]] virtual expected<std::vector<double>>
  squared_norms(std::span<const measured_mean> means) = 0;

  /// Waits until all is done that the stream was asked for, so that the host can look at what was
  /// copied to it. Thread: one that computes. Errors: as the device's.
  [[nodiscard]] virtual expected<void> wait() = 0;

  /// As `to_device`, for values that come again and again, such as variables: one that is still in
  /// the memory where it was at the last call is not copied again, and one that is like the last at
  /// its position is copied to the same place: the results are good until the next call. Until then
  /// the stream shares the host's memory, so that nothing may be written there meanwhile.
  /// Cost: one copy for each version of a variable; none for one that lies on the device.
  /// @param has_own_places Values that lie on the device are copied each time, too: for work that
  /// is bound to addresses.
  [[nodiscard]] expected<std::vector<tensor>> resident(std::span<const tensor> values,
                                                       bool has_own_places = false);

protected:
  /// The next `resident` copies all.
  void forget_residents() { residents_.clear(); }

private:
  struct copy {
    tensor host; ///< Nothing, of a value that lies on the device.
    tensor there;
    bool is_at_home = false; ///< Whether the value lies on the device.
  };

  std::vector<copy> residents_; ///< By position.
};

/// A device that a `gpu` actor owns.
class compute_device {
public:
  virtual ~compute_device() = default;

  /// Its name for people: "gpu:0 (NVIDIA H200)".
  [[nodiscard]] virtual std::string name() const = 0;

  [[nodiscard]] virtual troupe::device where() const = 0;

  [[nodiscard]] virtual uint32_t stream_count() const = 0;

  /// One of its streams, to be asked: what it is asked for from now on is done after all that was
  /// published. There is no other way to a stream, so that no reader can forget to wait. It lives
  /// as long as the device. Thread: that of the stream. @pre index < stream_count()
  [[nodiscard]] virtual compute_stream& stream(uint32_t index) = 0;

  /// Has other streams, those of other handles to the same device, too, come past what this one was
  /// asked for so far before they do what they are asked for from now on (`stream`). Nothing waits
  /// on the host. Thread: that of the stream. Errors: `notify` tells them.
  virtual void publish(uint32_t stream) = 0;

  /// Whether a stream did all that it was asked for so far; `notify` tells what it did not, and has
  /// it go on. Looks, and does not wait. Thread: that of the stream.
  [[nodiscard]] virtual bool is_well(uint32_t stream) = 0;

  /// Has `done` called, once, when all is done that was asked of a stream so far; never, if the
  /// device is lost before. Thread: that of the stream; `done` runs on any, and must not turn to
  /// the device.
  /// Errors: as `loss`, or resource if the device refuses; then `done` is not called.
  [[nodiscard]] virtual expected<void> notify(uint32_t stream, std::function<void()> done) = 0;

  /// Why the device is of no use any more; nothing while it is. Looks, and does not wait.
  /// Thread: any.
  [[nodiscard]] virtual std::optional<error> loss() = 0;
};

/// Whether all devices add such elements.
[[nodiscard]] inline bool adds_on_devices(dtype type) {
  return is_floating(type);
}

/// As `compute_stream::sum`, into memory that is there, on the calling thread.
void add_up(std::span<const tensor> values, tensor& sum, double divisor = 1);

/// Extents of the result of `compute_stream::gather` for such values. @pre As there.
[[nodiscard]] shape gathered_extents(std::span<const tensor> values, size_t axis);

/// As `compute_stream::gather`, into memory that is there, on the calling thread.
void lay_out(std::span<const tensor> values, size_t axis, tensor& result);

/// Extents of the result of `compute_stream::combine` for such rows.
[[nodiscard]] shape combined_extents(const sparse_sum& rows);

/// As `compute_stream::combine`, into memory that is there, on the calling thread.
void combine_rows(const sparse_sum& rows, tensor& result);

/// The stream of work that needs no device: it computes where it is called, on the host's memory.
[[nodiscard]] compute_stream& host_stream();

} // namespace troupe
