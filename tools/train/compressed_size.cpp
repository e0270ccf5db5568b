// SPDX-License-Identifier: Apache-2.0
// Compresses into a scratch buffer, because only the compressed size is needed.
#include "tools/train/compressed_size.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <lzma.h>
#include <zlib.h>

namespace troupe {

namespace {

constexpr size_t scratch_bytes = size_t{64} << 10;

tl::unexpected<error> failed_compression(std::string_view compressor, int code) {
  return fail(errc::resource, fmt::format("{} could not compress the text (code {}); is there "
                                          "enough memory?",
                                          compressor, code));
}

} // namespace

expected<uint64_t> gzip_bytes(std::string_view text) {
  constexpr int gzip_framing = 16; // beside the window's size: asks for gzip's header and trailer
  constexpr int memory_level = 8;
  z_stream stream{};
  const int begun = deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + gzip_framing,
                                 memory_level, Z_DEFAULT_STRATEGY);
  if (begun != Z_OK) return failed_compression("gzip", begun);
  unsigned char scratch[scratch_bytes];
  uint64_t size = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    // zlib counts in 32 bits, so a long text is fed in pieces.
    const auto piece = std::min<size_t>(text.size(), std::numeric_limits<uInt>::max());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(piece);
    stream.next_out = scratch;
    stream.avail_out = scratch_bytes;
    state = deflate(&stream, piece == text.size() ? Z_FINISH : Z_NO_FLUSH);
    text.remove_prefix(piece - stream.avail_in);
    size += scratch_bytes - stream.avail_out;
  }
  deflateEnd(&stream);
  if (state != Z_STREAM_END) return failed_compression("gzip", state);
  return size;
}

expected<uint64_t> xz_bytes(std::string_view text) {
  lzma_stream stream = LZMA_STREAM_INIT;
  const auto begun = lzma_easy_encoder(&stream, LZMA_PRESET_DEFAULT, LZMA_CHECK_CRC64);
  if (begun != LZMA_OK) return failed_compression("xz", begun);
  uint8_t scratch[scratch_bytes];
  stream.next_in = reinterpret_cast<const uint8_t*>(text.data());
  stream.avail_in = text.size();
  auto state = LZMA_OK;
  while (state == LZMA_OK) {
    stream.next_out = scratch;
    stream.avail_out = scratch_bytes;
    state = lzma_code(&stream, LZMA_FINISH);
  }
  const uint64_t size = stream.total_out;
  lzma_end(&stream);
  if (state != LZMA_STREAM_END) return failed_compression("xz", state);
  return size;
}

} // namespace troupe
