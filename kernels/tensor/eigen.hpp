// SPDX-License-Identifier: Apache-2.0
// Tensors of rank 1 and 2 as vectors and matrices of Eigen, without a copy.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "messages/errors/failure.hpp"

#include <Eigen/Core>

namespace troupe {

/// A vector of Eigen over elements that it does not own; `T` is const for reading.
template <class T>
using vector_map
  = Eigen::Map<std::conditional_t<std::is_const_v<T>, const Eigen::VectorX<std::remove_const_t<T>>,
                                  Eigen::VectorX<T>>,
               Eigen::Unaligned, Eigen::InnerStride<Eigen::Dynamic>>;

/// A matrix with its rows one after the other, as Eigen names it.
template <class T>
using row_major_matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A matrix of Eigen over elements that it does not own; `T` is const for reading.
template <class T>
using matrix_map = Eigen::Map<
  std::conditional_t<std::is_const_v<T>, const row_major_matrix<std::remove_const_t<T>>,
                     row_major_matrix<T>>,
  Eigen::Unaligned, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;

namespace detail {

inline void check_map(const tensor& from, dtype type, size_t rank) {
  from.check_type(type);
  from.check_on_host();
  if (from.rank() == rank) return;
  throw failure{{errc::invalid_argument, "a tensor of shape " + to_string(from.extents())
                                           + (rank == 1 ? " is no vector" : " is no matrix")
                                           + ": reshape() it before"}};
}

/// `Element` is T or const T.
template <class T, class Element>
vector_map<Element> map_vector(Element* data, const tensor& from) {
  check_map(from, dtype_of<T>, 1);
  return {data, from.extents()[0], Eigen::InnerStride<Eigen::Dynamic>{from.strides()[0]}};
}

template <class T, class Element>
matrix_map<Element> map_matrix(Element* data, const tensor& from) {
  check_map(from, dtype_of<T>, 2);
  return {data, from.extents()[0], from.extents()[1], {from.strides()[0], from.strides()[1]}};
}

} // namespace detail

/// The elements of a tensor, whatever its strides; valid while the tensor's memory is.
/// Errors: throws `failure` with type_mismatch unless `dtype_of<T> == type()`, invalid_argument
/// unless rank() == 1, failed_precondition for elements that do not lie on the host.
template <class T>
[[nodiscard]] vector_map<const T> vector_of(const tensor& from) {
  return detail::map_vector<T>(static_cast<const T*>(from.data()), from);
}

/// Like `vector_of`, for writing.
/// Errors: as `vector_of`; failed_precondition, too, if the elements are read-only.
template <class T>
[[nodiscard]] vector_map<T> mutable_vector_of(tensor& from) {
  return detail::map_vector<T>(static_cast<T*>(from.mutable_data()), from);
}

/// Like `vector_of`, for a tensor of rank 2.
/// Errors: as `vector_of`, but invalid_argument unless rank() == 2.
template <class T>
[[nodiscard]] matrix_map<const T> matrix_of(const tensor& from) {
  return detail::map_matrix<T>(static_cast<const T*>(from.data()), from);
}

/// Like `matrix_of`, for writing.
/// Errors: as `matrix_of`; failed_precondition, too, if the elements are read-only.
template <class T>
[[nodiscard]] matrix_map<T> mutable_matrix_of(tensor& from) {
  return detail::map_matrix<T>(static_cast<T*>(from.mutable_data()), from);
}

} // namespace troupe
