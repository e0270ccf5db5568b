// SPDX-License-Identifier: Apache-2.0
// Gradients into one, sums and norms, on a GPU.
#include "kernels/cuda/sums.cuh"
#include "kernels/math/gathered.cuh"
#include "kernels/math/reduce.hpp"

namespace troupe::cuda {

namespace {

template <class T>
__global__ void __launch_bounds__(block_threads)
  reduce_kernel(size_t whole, size_t count, gathered<T> from, T* out) {
  constexpr size_t width = gathered_width<T>;
  for (size_t i = thread_of_grid(); i < whole; i += threads_of_grid())
    reinterpret_cast<packet<T, width>*>(out)[i] = combine<width>(from, i);
  for (size_t i = whole * width + thread_of_grid(); i < count; i += threads_of_grid())
    out[i] = combine<1>(from, i).values[0];
}

template <class T>
void queue_reduce(const context& on, const gathered<T>& from, size_t count, T* out) {
  if (count == 0) return;
  bool aligned = are_aligned(from) && are_aligned(packet_bytes, out);
  size_t whole = aligned ? count / gathered_width<T> : 0;
  launch(on, blocks_for(aligned ? whole + 1 : count, block_threads), block_threads,
         reduce_kernel<T>, whole, count, from, out);
}

/// An element in double.
template <class T>
struct plain_element {
  const T* values;

  __device__ sum_values<1> operator()(size_t i) const { return {{widen<double>(values[i])}}; }
};

template <class T>
struct squared_element {
  const T* values;

  __device__ sum_values<1> operator()(size_t i) const {
    double value = widen<double>(values[i]);
    return {{value * value}};
  }
};

/// 1 for infinity and NaN.
template <class T>
struct non_finite_element {
  const T* values;

  __device__ sum_values<1> operator()(size_t i) const {
    return {{troupe::detail::is_non_finite(values[i]) ? 1.0 : 0.0}};
  }
};

/// Queues total[i] = the sum over array i. @returns Where the totals are; null after a failure.
template <template <class> class Element>
std::shared_ptr<std::byte> queue_sums(const context& on, std::span<const elements> arrays) {
  auto room = room_for_sums(on, arrays.size());
  auto* at = reinterpret_cast<double*>(room.get());
  for (size_t i = 0; i < arrays.size() && room != nullptr; ++i)
    visit_floating(arrays[i].type, [&]<class T>(T) {
      sum_elements<1>(on, arrays[i].count, cpu::sum_chunk_elements,
                      Element<T>{arrays[i].as<T>().data()}, at + i);
    });
  return room;
}

/// The sum over an array; waits for it.
template <template <class> class Element>
double sum_over(const context& on, const elements& values) {
  auto room = queue_sums<Element>(on, {&values, 1});
  return fetch(on, reinterpret_cast<const double*>(room.get()));
}

/// The cpu twin adds up the squares of so many elements by lanes, then adds it to the chunk's sum.
constexpr unsigned norm_block = 128;
static_assert(norm_block == cpu::block_elements);
constexpr unsigned norm_blocks_at_once = block_threads / sum_lanes;
constexpr unsigned norm_tile = norm_blocks_at_once * norm_block;

/// Writes the squares of the elements of packet `at`.
template <size_t width, class T>
__device__ void write_squares(const gathered<T>& from, size_t at, double* to) {
  auto values = combine<width>(from, at);
  for (size_t k = 0; k < width; ++k) {
    double value = values.values[k];
    to[k] = value * value;
  }
}

/// The sum of squares of the elements [begin, end), all of one chunk, on thread 0; the block comes
/// here together. @param aligned Whether packets may be read.
template <class T>
[[nodiscard]] __device__ double sum_squares(const gathered<T>& from, bool aligned, size_t begin,
                                            size_t end) {
  constexpr unsigned width = gathered_width<T>;
  static_assert(norm_tile % width == 0);
  TROUPE_SHARED(double, tile, [norm_tile]);
  TROUPE_SHARED(double, lanes, [block_threads]);
  double sum = 0;
  for (; begin < end; begin += norm_tile) {
    unsigned held = end - begin < norm_tile ? static_cast<unsigned>(end - begin) : norm_tile;
    unsigned whole = aligned ? held / width : 0;
    for (unsigned i = threadIdx.x; i < whole; i += blockDim.x)
      write_squares<width>(from, begin / width + i, tile + i * width);
    for (unsigned i = whole * width + threadIdx.x; i < held; i += blockDim.x)
      write_squares<1>(from, begin + i, tile + i);
    __syncthreads();
    unsigned first = threadIdx.x / sum_lanes * norm_block;
    unsigned last = held < first + norm_block ? held : first + norm_block;
    double lane_sum = 0;
    for (unsigned i = first + threadIdx.x % sum_lanes; i < last; i += sum_lanes)
      lane_sum += tile[i];
    lanes[threadIdx.x] = lane_sum;
    __syncthreads();
    if (threadIdx.x % sum_lanes == 0) join_lanes(lanes + threadIdx.x);
    __syncthreads();
    if (threadIdx.x == 0)
      for (unsigned block = 0; block * norm_block < held; ++block)
        sum += lanes[block * sum_lanes]; // written again behind the next tile's first barrier
  }
  return sum;
}

/// partial[chunk] = the sum of squares over a chunk.
template <class T>
__global__ void __launch_bounds__(block_threads)
  squared_norm_kernel(size_t count, bool aligned, gathered<T> from, double* partial) {
  size_t chunks = (count + cpu::sum_chunk_elements - 1) / cpu::sum_chunk_elements;
  for (size_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    size_t end = (chunk + 1) * cpu::sum_chunk_elements;
    end = end < count ? end : count;
    double sum = sum_squares(from, aligned, chunk * cpu::sum_chunk_elements, end);
    if (threadIdx.x == 0) partial[chunk] = sum;
  }
}

/// Gradients of one chunk each, as many as one launch takes: a block has one.
template <class T>
struct small_gradients {
  static constexpr unsigned count_max = 12;

  gathered<T> from[count_max];
  unsigned counts[count_max]{};
  double* numbers[count_max]{};
  bool aligned[count_max]{};
};

template <class T>
__global__ void __launch_bounds__(block_threads) squared_norms_kernel(small_gradients<T> all) {
  auto i = blockIdx.x;
  double sum = sum_squares(all.from[i], all.aligned[i], 0, all.counts[i]);
  if (threadIdx.x == 0) *all.numbers[i] = sum;
}

} // namespace

template <class T>
gathering<T> gather(const context& on, const gradient_sum& gradient) {
  size_t count = gradient.sources[0].count;
  gathering<T> result;
  auto& into = result.from;
  into.divisor = static_cast<T>(gradient.divisor);
  into.scale = static_cast<T>(gradient.scale);
  into.scale_there = gradient.scale_there;
  into.limit = static_cast<T>(gradient.limit);
  for (const auto& source : gradient.sources) {
    if (into.count == gathered_sources_max) {
      if (result.sum_so_far == nullptr) result.sum_so_far = on.workspace(count * sizeof(T));
      if (result.sum_so_far == nullptr) return result;
      into.is_finished = false;
      auto* sum = reinterpret_cast<T*>(result.sum_so_far.get());
      queue_reduce(on, into, count, sum);
      into.is_finished = true;
      into.data[0] = sum;
      into.types[0] = dtype_of<T>;
      into.count = 1;
    }
    into.data[into.count] = source.data;
    into.types[into.count++] = source.type;
  }
  return result;
}

template <class T>
void reduce(const context& on, const gradient_sum& gradient, std::span<T> out) {
  check<T>(gradient, out.size());
  auto gathering = gather<T>(on, gradient);
  queue_reduce(on, gathering.from, out.size(), out.data());
}

template <class T>
void accumulate(const context& on, const elements& source, std::span<T> sum) {
  const elements sources[] = {{sum.data(), dtype_of<T>, sum.size()}, source};
  reduce(on, gradient_sum{.sources = sources}, sum);
}

double sum(const context& on, const elements& values) {
  return sum_over<plain_element>(on, values);
}

double squared_norm(const context& on, const elements& values) {
  return sum_over<squared_element>(on, values);
}

template <class T>
void squared_norm(const context& on, const gradient_sum& gradient, std::span<double> number) {
  TROUPE_ASSERT(number.size() == 1, number.size());
  TROUPE_ASSERT(!gradient.sources.empty());
  size_t count = gradient.sources[0].count;
  check<T>(gradient, count);
  auto gathering = gather<T>(on, gradient);
  size_t chunks = (count + cpu::sum_chunk_elements - 1) / cpu::sum_chunk_elements;
  auto room = room_for_sums(on, chunks);
  if (room == nullptr) return;
  auto* partial = reinterpret_cast<double*>(room.get());
  if (count > 0)
    launch(on, blocks_for(chunks, 1), block_threads, squared_norm_kernel<T>, count,
           are_aligned(gathering.from), gathering.from, partial);
  add_halves(on, 1, chunks, partial, number.data());
}

template <class T>
void squared_norms(const context& on, std::span<const measured_sum> sums) {
  small_gradients<T> small;
  static_assert(sizeof(small) <= argument_bytes_max);
  std::vector<gathering<T>> gathered; // until the launch
  auto launch_small = [&] {
    if (gathered.empty()) return;
    launch(on, static_cast<unsigned>(gathered.size()), block_threads, squared_norms_kernel<T>,
           small);
    gathered.clear();
  };
  for (const auto& [gradient, number] : sums) {
    TROUPE_ASSERT(!gradient.sources.empty());
    auto count = gradient.sources[0].count;
    if (count > cpu::sum_chunk_elements) {
      squared_norm<T>(on, gradient, std::span{number, 1});
      continue;
    }
    check<T>(gradient, count);
    auto at = gathered.size();
    gathered.push_back(gather<T>(on, gradient));
    small.from[at] = gathered.back().from;
    small.counts[at] = static_cast<unsigned>(count);
    small.numbers[at] = number;
    small.aligned[at] = are_aligned(small.from[at]);
    if (gathered.size() == small.count_max) launch_small();
  }
  launch_small();
}

size_t count_non_finite(const context& on, const elements& values) {
  double count = sum_over<non_finite_element>(on, values);
  return count > 0 ? static_cast<size_t>(count) : 0; // NaN after a failure
}

void count_non_finite(const context& on, std::span<const elements> arrays,
                      std::span<double> number) {
  TROUPE_ASSERT(number.size() == 1, number.size());
  auto room = queue_sums<non_finite_element>(on, arrays);
  if (room == nullptr) return;
  add_halves(on, 1, arrays.size(), reinterpret_cast<const double*>(room.get()), number.data());
}

#define TROUPE_INSTANTIATE(T)                                                                      \
  template gathering<T> gather(const context&, const gradient_sum&);                               \
  template void reduce(const context&, const gradient_sum&, std::span<T>);                         \
  template void accumulate(const context&, const elements&, std::span<T>);                         \
  template void squared_norm<T>(const context&, const gradient_sum&, std::span<double>);           \
  template void squared_norms<T>(const context&, std::span<const measured_sum>);

TROUPE_INSTANTIATE(float)
TROUPE_INSTANTIATE(double)

#undef TROUPE_INSTANTIATE

} // namespace troupe::cuda
