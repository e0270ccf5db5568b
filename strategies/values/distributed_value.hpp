// SPDX-License-Identifier: Apache-2.0
// One value for each replica: the arguments of `run`, and its results.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/values/variable.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

/// Stands for no replica: it has a part only of values that are the same for all.
inline constexpr size_t no_replica = std::numeric_limits<size_t>::max();

/// Refuses a replica, or `no_replica`, that has no part of a value of `count` replicas.
[[noreturn]] void refuse_replica(size_t replica, size_t count);

/// A value of which every replica has its own part. The parts of a `per_replica` value may differ;
/// a `mirrored` value is the same for all, and is held once.
template <class T>
class distributed_value {
public:
  using value_type = T;

  distributed_value() = default;

  /// One value for each replica, by index.
  /// Errors: throws `failure` with invalid_argument for none.
  [[nodiscard]] static distributed_value per_replica(std::vector<T> values) {
    if (values.empty())
      throw failure{{errc::invalid_argument,
                     "a distributed value of no replicas; give one value for each replica"}};
    auto count = values.size();
    if constexpr (std::is_same_v<T, bool>)
      return {storage(values.begin(), values.end()), count, false};
    else
      return {std::move(values), count, false};
  }

  /// The same value for all replicas, on so many devices.
  [[nodiscard]] static distributed_value mirrored(T value, size_t devices) {
    storage held;
    held.push_back(std::move(value));
    return {std::move(held), devices, true};
  }

  /// How many components there are: one for each replica, or for each device of a mirrored value.
  [[nodiscard]] size_t size() const { return count_; }

  /// True if the value is the same for all replicas, and so may be read in the cross-replica
  /// context.
  [[nodiscard]] bool is_mirrored() const { return is_mirrored_; }

  /// The value of one replica.
  /// Errors: throws `failure` with invalid_argument unless replica < size().
  [[nodiscard]] const T& operator[](size_t replica) const {
    if (replica >= count_ || values_.empty()) refuse_replica(replica, count_);
    return values_[is_mirrored_ ? 0 : replica];
  }

  /// The value of one replica, for code that cannot know how many there are.
  /// Every replica and `no_replica` have a mirrored value, and numbers that are the same for all.
  /// Errors: throws `failure` with invalid_argument if the replica has no part.
  [[nodiscard]] const T& select(size_t replica) const {
    if constexpr (std::is_arithmetic_v<T>)
      if (replica == no_replica && !values_.empty() && are_all(values_.front()))
        return values_.front();
    if (values_.empty() || (!is_mirrored_ && replica >= count_)) refuse_replica(replica, count_);
    return values_[is_mirrored_ ? 0 : replica];
  }

  /// The value of replica 0. Errors: throws `failure` with invalid_argument if there is none.
  [[nodiscard]] const T& primary() const { return (*this)[0]; }

  /// The parts of `replicas` replicas, by index: a mirrored value once for each of them.
  [[nodiscard]] std::vector<T> for_each_of(size_t replicas) const {
    return is_mirrored_ ? std::vector<T>(replicas, values_.front()) : local_results();
  }

  /// The components, by index: those of replicas, or one for each device of a mirrored value.
  [[nodiscard]] std::vector<T> local_results() const {
    if (is_mirrored_) return std::vector<T>(count_, values_.front());
    return std::vector<T>(values_.begin(), values_.end());
  }

private:
  /// Elements that can be referred to one by one, as the booleans of a vector cannot.
  using storage = std::conditional_t<std::is_same_v<T, bool>, std::deque<bool>, std::vector<T>>;

  [[nodiscard]] bool are_all(const T& number) const {
    return std::ranges::all_of(values_, [&number](const T& each) { return each == number; });
  }

  distributed_value(storage values, size_t count, bool is_mirrored)
    : values_(std::move(values)), count_(count), is_mirrored_(is_mirrored) {}

  storage values_; ///< One if mirrored.
  size_t count_ = 0;
  bool is_mirrored_ = false;
};

template <class T>
inline constexpr bool is_distributed = false;
template <class T>
inline constexpr bool is_distributed<distributed_value<T>> = true;

// Whether two values are one object, not just equal: if replicas bring one object, it is one value
// for all. Numbers never are one object, nor are two reads of a variable by replicas of a run.

template <class T>
[[nodiscard]] bool is_same_object(const T&, const T&) {
  return false;
}

[[nodiscard]] inline bool is_same_object(const tensor& a, const tensor& b) {
  return a.data() != nullptr && a.data() == b.data() && a.owner() == b.owner()
         && a.type() == b.type() && a.extents() == b.extents() && a.strides() == b.strides();
}

[[nodiscard]] inline bool is_same_object(const variable& a, const variable& b) {
  return a == b;
}

template <class T>
[[nodiscard]] bool is_same_object(const std::shared_ptr<T>& a, const std::shared_ptr<T>& b) {
  return a == b;
}

} // namespace troupe
