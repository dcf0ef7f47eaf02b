// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <png.h>
#include <webp/encode.h>

#include <cstdio>
#include <cstdlib>
#include <string>
// It needs what stands in cstdio.
#include <jpeglib.h>

#include "edl/compute/data/format/picture.hpp"

namespace support {

/// A picture whose values follow from their places.
inline edl::data::pixels gradient(edl::shape of) {
  edl::data::pixels p{of, {}};
  for (int y = 0; y < of.height; ++y)
    for (int x = 0; x < of.width; ++x)
      for (int c = 0; c < of.channels; ++c)
        p.values.push_back(std::uint8_t((40 * y + 10 * x + 70 * c) % 256));
  return p;
}

/// A picture of one colour.
inline edl::data::pixels plain(edl::shape of, std::uint8_t value) {
  return {of, std::vector<std::uint8_t>(of.size(), value)};
}

inline std::string encode_jpeg(edl::data::pixels const& of, bool progressive = false) {
  jpeg_error_mgr errors{};
  jpeg_compress_struct c{};
  c.err = jpeg_std_error(&errors);
  jpeg_create_compress(&c);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&c, &bytes, &size);
  c.image_width = JDIMENSION(of.extents.width), c.image_height = JDIMENSION(of.extents.height);
  c.input_components = of.extents.channels;
  c.in_color_space = of.extents.channels == 1 ? JCS_GRAYSCALE : of.extents.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&c);
  jpeg_set_quality(&c, 100, TRUE);
  if (progressive) jpeg_simple_progression(&c);
  jpeg_start_compress(&c, TRUE);
  std::size_t const row = std::size_t(of.extents.width) * std::size_t(of.extents.channels);
  while (c.next_scanline < c.image_height) {
    auto* from = const_cast<unsigned char*>(of.values.data() + c.next_scanline * row);
    jpeg_write_scanlines(&c, &from, 1);
  }
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
  std::string file(reinterpret_cast<char const*>(bytes), size);
  std::free(bytes);
  return file;
}

inline std::string encode_webp(edl::data::pixels const& of) {
  std::uint8_t* bytes = nullptr;
  std::size_t const size = WebPEncodeLosslessRGB(of.values.data(), of.extents.width, of.extents.height,
                                                 3 * of.extents.width, &bytes);
  std::string file(reinterpret_cast<char const*>(bytes), size);
  WebPFree(bytes);
  return file;
}

/// A PNG file of any kind: `rows` are its bytes as they are stored, of all rows.
inline std::string encode_any_png(int height, int width, int bits, int kind, bool interlaced,
                                  std::vector<std::uint8_t> rows) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::string file;
  png_set_write_fn(
      png, &file,
      [](png_structp to, png_bytep bytes, std::size_t count) {
        static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<char const*>(bytes), count);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, png_uint_32(width), png_uint_32(height), bits, kind,
               interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_color const palette[]{{10, 20, 30}, {40, 50, 60}};
  png_byte const transparent[]{0, 255};
  if (kind == PNG_COLOR_TYPE_PALETTE) {
    png_set_PLTE(png, info, palette, 2);
    png_set_tRNS(png, info, transparent, 2, nullptr);
  }
  std::vector<png_bytep> starts;
  for (int y = 0; y < height; ++y)
    starts.push_back(rows.data() + std::size_t(y) * (rows.size() / std::size_t(height)));
  png_set_rows(png, info, starts.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

}  // namespace support
