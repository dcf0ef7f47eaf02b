// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <webp/encode.h>

#include <cstdio>
#include <cstdlib>
#include <string>
// It needs what stands in cstdio.
#include <jpeglib.h>

#include "edl/data/picture_file.hpp"

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
  c.image_width = JDIMENSION(of.of.width), c.image_height = JDIMENSION(of.of.height);
  c.input_components = of.of.channels;
  c.in_color_space = of.of.channels == 1 ? JCS_GRAYSCALE : of.of.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&c);
  jpeg_set_quality(&c, 100, TRUE);
  if (progressive) jpeg_simple_progression(&c);
  jpeg_start_compress(&c, TRUE);
  std::size_t const row = std::size_t(of.of.width) * std::size_t(of.of.channels);
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
  std::size_t const size =
      WebPEncodeLosslessRGB(of.values.data(), of.of.width, of.of.height, 3 * of.of.width, &bytes);
  std::string file(reinterpret_cast<char const*>(bytes), size);
  WebPFree(bytes);
  return file;
}

}  // namespace support
