// SPDX-License-Identifier: Apache-2.0
// Things that each worker of a coordinator has one of: values, iterators, anything.
#pragma once

#include "messages/coordinator_message.hpp"
#include "strategies/data/dataset.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe {

class closure_service;

/// A value for each worker, by index: as an argument, or anywhere in one, it becomes that of the
/// worker that calls the function.
template <class T>
struct per_worker_values {
  std::vector<T> values;
};

/// Something that each worker makes for itself and keeps: as an argument, it becomes the worker's
/// own, and the function takes a `T&`; in a nest, a `std::reference_wrapper<T>`. A worker that is
/// started again makes it anew.
template <class T>
class per_worker_resource {
public:
  per_worker_resource(const closure_service* of, worker_resource which) : of_(of), which_(which) {}

  /// The coordinator that it belongs to.
  [[nodiscard]] const closure_service* of() const { return of_; }

  [[nodiscard]] const worker_resource& which() const { return which_; }

private:
  const closure_service* of_;
  worker_resource which_;
};

/// An iterator for each worker, over a dataset of its own; the function takes a
/// `dataset_iterator&`.
class per_worker_iterator : public per_worker_resource<dataset_iterator> {
public:
  using per_worker_resource::per_worker_resource;

  /// Workers read; here there is nothing. Errors: throws `failure` with unimplemented.
  [[noreturn]] void next() const;
};

/// A dataset for each worker.
class per_worker_dataset {
public:
  per_worker_dataset(std::weak_ptr<closure_service> of, uint32_t resource)
    : of_(std::move(of)), resource_(resource) {}

  /// New iterators, one for each worker, at the first element. Each call begins another pass over
  /// this dataset, in another order if it is shuffled; other datasets go on as before.
  /// Errors: throws `failure` with wrong_context in a scheduled function, or where the coordinator
  /// does not lead; failed_precondition if there is no coordinator any more.
  [[nodiscard]] per_worker_iterator iterator() const;

private:
  std::weak_ptr<closure_service> of_; ///< Functions may hold datasets, and must not hold that.
  uint32_t resource_;
  std::shared_ptr<uint32_t> next_pass_ = std::make_shared<uint32_t>(0); ///< Shared by all copies.
};

} // namespace troupe
