// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <png.h>
#include <webp/decode.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
// These need what stands in cstdio.
#include <jerror.h>
#include <jpeglib.h>

#include "edl/compute/data/directory.hpp"
#include "edl/compute/data/format/picture_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::data {
namespace detail {

inline constexpr std::uint64_t most_side = 65'535;

/// What a library says of a file; it is one line, and says nothing of a terminal's.
inline data_error picture_failure(std::string_view format, char const* said) {
  return data_error(fmt::format("{} is damaged: {}", format, edl::printable(said, 128)));
}

/// Room for a picture, once its size is known to be a sane one.
inline void shape_pixels(std::uint64_t height, std::uint64_t width, int channels, pixels& into) {
  if (height < 1 || width < 1 || height > most_side || width > most_side || height * width > most_places)
    throw data_error(fmt::format("says that it has {} × {} places; at most {} are read, and {} a side",
                                 height, width, most_places, most_side));
  into.extents = {int(height), int(width), channels};
  into.values.resize(into.extents.size());
}

// The libraries for PNG and JPEG leave by longjmp. What they may leave stands in a struct that another
// function owns, so that nothing is to be destroyed on the way.

struct png_input {
  std::string_view left;
  pixels* into = nullptr;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<png_bytep> rows;
  std::uint64_t bits = 0;  // of a place in the file
  std::string refused;     // by us, not by the library
  char said[128] = "no reason given";

  ~png_input() { png_destroy_read_struct(&png, &info, nullptr); }
};

inline void png_fail(png_structp png, png_const_charp what) {
  auto* const of = static_cast<png_input*>(png_get_error_ptr(png));
  std::snprintf(of->said, sizeof of->said, "%s", what);
  std::longjmp(png_jmpbuf(png), 1);  // NOLINT: it is the library's way
}

inline void png_take(png_structp png, png_bytep to, std::size_t count) {
  auto* const of = static_cast<png_input*>(png_get_io_ptr(png));
  if (count > of->left.size()) png_error(png, "the file ends too early");
  std::memcpy(to, of->left.data(), count);
  of->left.remove_prefix(count);
}

/// Makes room for the rows; false where the header asks for too much.
inline bool png_room(png_input& of, std::size_t file_size) noexcept try {
  std::uint64_t const height = png_get_image_height(of.png, of.info),
                      width = png_get_image_width(of.png, of.info);
  // A byte of a deflated stream makes 1,032 at most.
  if (std::uint64_t const bits = height * width * of.bits;
      height <= most_side && width <= most_side && bits / 8 > (std::uint64_t(file_size) + 16) * 1032)
    throw data_error(
        fmt::format("says that it has {} × {} places, which {} bytes cannot hold", height, width, file_size));
  int const channels = png_get_color_type(of.png, of.info) & PNG_COLOR_MASK_COLOR ? 3 : 1;
  shape_pixels(height, width, channels, *of.into);
  for (std::size_t y = 0; y < height; ++y)
    of.rows.push_back(of.into->values.data() + y * width * std::size_t(channels));
  return true;
} catch (std::exception const& e) {
  of.refused = e.what();
  return false;
}

/// False where the library or we refuse the file.
inline bool png_read(png_input& of) {
  std::size_t const size = of.left.size();
  if (setjmp(png_jmpbuf(of.png)) != 0) return false;  // NOLINT: it is the library's way
  png_set_read_fn(of.png, &of, png_take);
  png_set_user_limits(of.png, png_uint_32(most_side), png_uint_32(most_side));
  png_set_chunk_cache_max(of.png, 128);
  png_set_chunk_malloc_max(of.png, 8u << 20);
  png_read_info(of.png, of.info);
  of.bits = std::uint64_t(png_get_bit_depth(of.png, of.info)) * png_get_channels(of.png, of.info);
  png_set_expand(of.png);
  png_set_scale_16(of.png);
  png_set_strip_alpha(of.png);
  png_set_interlace_handling(of.png);
  png_read_update_info(of.png, of.info);
  if (!png_room(of, size)) return false;
  if (png_get_rowbytes(of.png, of.info) !=
      std::size_t(of.into->extents.width) * std::size_t(of.into->extents.channels))
    png_error(of.png, "its rows have another size than its header says");
  png_read_image(of.png, of.rows.data());
  png_read_end(of.png, nullptr);
  return true;
}

inline void decode_png(std::string_view file, pixels& into) {
  png_input of;
  of.left = file;
  of.into = &into;
  of.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &of, png_fail, [](png_structp, png_const_charp) {});
  of.info = of.png ? png_create_info_struct(of.png) : nullptr;
  if (!of.info) throw error("PNG: no memory");
  if (png_read(of)) return;
  if (!of.refused.empty()) throw data_error(of.refused);
  throw picture_failure("a PNG file", of.said);
}

struct jpeg_input {
  jpeg_error_mgr errors{};  // first: the library hands it back
  std::jmp_buf leave{};
  jpeg_progress_mgr progress{};
  jpeg_decompress_struct decoder{};
  pixels* into = nullptr;
  std::string refused;
  char said[JMSG_LENGTH_MAX] = "";

  ~jpeg_input() { jpeg_destroy_decompress(&decoder); }
};

inline jpeg_input& jpeg_self(j_common_ptr of) { return *reinterpret_cast<jpeg_input*>(of->err); }

inline void jpeg_fail(j_common_ptr of) {
  jpeg_input& self = jpeg_self(of);
  self.errors.format_message(of, self.said);
  std::longjmp(self.leave, 1);  // NOLINT: it is the library's way
}

/// Bytes that are missing or make no sense are only a warning there, and the rest of the picture is grey.
inline void jpeg_warn(j_common_ptr of, int level) {
  int const code = of->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
                    code == JWRN_NOT_SEQUENTIAL))
    jpeg_fail(of);
}

/// Each scan goes over the whole picture, and costs a file a few bytes.
inline void jpeg_count_scans(j_common_ptr of) {
  constexpr int most_scans = 200;
  if (!of->is_decompressor || reinterpret_cast<j_decompress_ptr>(of)->input_scan_number <= most_scans) return;
  jpeg_input& self = jpeg_self(of);
  std::snprintf(self.said, sizeof self.said, "it has more than %d scans", most_scans);
  std::longjmp(self.leave, 1);  // NOLINT: it is the library's way
}

inline bool jpeg_room(jpeg_input& in) noexcept try {
  if (in.decoder.num_components != 1 && in.decoder.num_components != 3)
    throw data_error(
        fmt::format("a JPEG file with {} colours, as for printing; make it RGB", in.decoder.num_components));
  shape_pixels(in.decoder.image_height, in.decoder.image_width, in.decoder.num_components == 1 ? 1 : 3,
               *in.into);
  return true;
} catch (std::exception const& e) {
  in.refused = e.what();
  return false;
}

inline bool jpeg_read(jpeg_input& in, std::string_view file) {
  if (setjmp(in.leave) != 0) return false;  // NOLINT: it is the library's way
  jpeg_create_decompress(&in.decoder);
  in.decoder.progress = &in.progress;
  jpeg_mem_src(&in.decoder, reinterpret_cast<unsigned char const*>(file.data()),
               static_cast<unsigned long>(file.size()));
  jpeg_read_header(&in.decoder, TRUE);
  if (!jpeg_room(in)) return false;
  in.decoder.out_color_space = in.decoder.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&in.decoder);
  std::size_t const row = std::size_t(in.into->extents.width) * std::size_t(in.into->extents.channels);
  while (in.decoder.output_scanline < in.decoder.output_height) {
    JSAMPROW to = in.into->values.data() + in.decoder.output_scanline * row;
    jpeg_read_scanlines(&in.decoder, &to, 1);
  }
  jpeg_finish_decompress(&in.decoder);
  return true;
}

inline void decode_jpeg(std::string_view file, pixels& into) {
  jpeg_input in;
  in.decoder.err = jpeg_std_error(&in.errors);
  in.errors.error_exit = jpeg_fail;
  in.errors.emit_message = jpeg_warn;
  in.progress.progress_monitor = jpeg_count_scans;
  in.into = &into;
  if (jpeg_read(in, file)) return;
  if (!in.refused.empty()) throw data_error(in.refused);
  throw picture_failure("a JPEG file", in.said);
}

inline void decode_webp(std::string_view file, pixels& into) {
  auto const* const bytes = reinterpret_cast<std::uint8_t const*>(file.data());
  WebPBitstreamFeatures of;
  if (WebPGetFeatures(bytes, file.size(), &of) != VP8_STATUS_OK)
    throw picture_failure("a WebP file", "its header cannot be read");
  if (of.has_animation) throw data_error("a WebP file that moves; keep one of its pictures");
  shape_pixels(std::uint64_t(of.height), std::uint64_t(of.width), 3, into);
  if (!WebPDecodeRGBInto(bytes, file.size(), into.values.data(), into.values.size(), 3 * of.width))
    throw picture_failure("a WebP file", "it ends too early, or its pixels make no sense");
}

}  // namespace detail

EDL_INLINE bool names_picture(std::string_view name) {
  static constexpr std::array<std::string_view, 6> endings{".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp"};
  return std::ranges::any_of(
      endings, [&](std::string_view e) { return name.size() > e.size() && detail::ends_as(name, e); });
}

EDL_INLINE void decode_picture(std::string_view file, pixels& into) {
  if (file.starts_with("\x89PNG\r\n\x1a\n")) return detail::decode_png(file, into);
  if (file.starts_with("\xff\xd8\xff")) return detail::decode_jpeg(file, into);
  if (file.starts_with("RIFF") && file.size() >= 12 && file.substr(8, 4) == "WEBP")
    return detail::decode_webp(file, into);
  throw data_error(file.empty() ? "is empty" : "is no PNG, JPEG or WebP file");
}

EDL_INLINE std::string encode_png(pixels const& of) {
  if ((of.extents.channels != 1 && of.extents.channels != 3) || of.extents.size() == 0 ||
      of.values.size() != of.extents.size())
    throw usage_error(fmt::format("{} values of {} × {} places with {} channels make no PNG file",
                                  of.values.size(), of.extents.height, of.extents.width,
                                  of.extents.channels));
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = png_uint_32(of.extents.width), image.height = png_uint_32(of.extents.height);
  image.format = of.extents.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(size, '\0');
  bool const made =
      png_image_write_to_memory(&image, file.data(), &size, 0, of.values.data(), 0, nullptr) != 0;
  std::string const said = image.message;
  png_image_free(&image);
  if (!made) throw error(fmt::format("a PNG file cannot be made: {}", said));
  file.resize(size);
  return file;
}

}  // namespace edl::data
