// SPDX-License-Identifier: Apache-2.0
// Arithmetic element by element on arrays of one size, f32 and f64.
#pragma once

#include "kernels/tensor/context.hpp"

#include <span>
#include <type_traits>

namespace troupe {

/// A scalar argument, which takes its type from the arrays beside it.
template <class T>
using scalar = std::type_identity_t<T>;

// All of these:
// Shape: every array [n], all of one size; what is written may be any of the inputs itself, or
//        disjoint from them
// Cost:  each input is read once and the output written once
// The twins give the same bits, for any number of threads.

namespace reference {

/// out = value
template <class T>
void fill(const context&, std::span<T> out, scalar<T> value);

/// out = a
template <class T>
void copy(const context&, std::span<const T> a, std::span<T> out);

/// out = a + b
template <class T>
void add(const context&, std::span<const T> a, std::span<const T> b, std::span<T> out);

/// out = a * b
template <class T>
void multiply(const context&, std::span<const T> a, std::span<const T> b, std::span<T> out);

/// out = factor * a
template <class T>
void scale(const context&, scalar<T> factor, std::span<const T> a, std::span<T> out);

/// out = a + weight * (b - a), each operation rounded: a step of an exponential moving average.
template <class T>
void lerp(const context&, std::span<const T> a, std::span<const T> b, scalar<T> weight,
          std::span<T> out);

} // namespace reference

namespace cpu {

/// As the reference, bit for bit.
template <class T>
void fill(const context&, std::span<T> out, scalar<T> value);

/// As the reference, bit for bit.
template <class T>
void copy(const context&, std::span<const T> a, std::span<T> out);

/// As the reference, bit for bit.
template <class T>
void add(const context&, std::span<const T> a, std::span<const T> b, std::span<T> out);

/// As the reference, bit for bit.
template <class T>
void multiply(const context&, std::span<const T> a, std::span<const T> b, std::span<T> out);

/// As the reference, bit for bit.
template <class T>
void scale(const context&, scalar<T> factor, std::span<const T> a, std::span<T> out);

/// As the reference, bit for bit.
template <class T>
void lerp(const context&, std::span<const T> a, std::span<const T> b, scalar<T> weight,
          std::span<T> out);

} // namespace cpu

namespace cuda {

/// As the reference, bit for bit.
template <class T>
void fill(const context&, std::span<T> out, scalar<T> value);

/// As the reference, bit for bit.
template <class T>
void copy(const context&, std::span<const T> a, std::span<T> out);

/// As the reference, bit for bit.
template <class T>
void add(const context&, std::span<const T> a, std::span<const T> b, std::span<T> out);

/// As the reference, bit for bit.
template <class T>
void multiply(const context&, std::span<const T> a, std::span<const T> b, std::span<T> out);

/// As the reference, bit for bit.
template <class T>
void scale(const context&, scalar<T> factor, std::span<const T> a, std::span<T> out);

/// As the reference, bit for bit.
template <class T>
void lerp(const context&, std::span<const T> a, std::span<const T> b, scalar<T> weight,
          std::span<T> out);

} // namespace cuda

} // namespace troupe
