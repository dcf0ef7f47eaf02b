// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>
#include <png.h>
#include <webp/decode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <vector>

#include "edl/compute/data/directory.hpp"
#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/picture.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/random.hpp"

namespace edl {
namespace data::detail {

/// The sources of each place of a resized axis: neighbours with weights.
struct resized_axis {
  std::vector<std::size_t> first, begin;  // the first neighbour; its weight's place
  std::vector<float> weights;

  resized_axis(int from, int to) {
    double const scale = double(from) / to;
    for (int i = 0; i < to; ++i) {
      begin.push_back(weights.size());
      if (to < from) {
        double const low = i * scale, high = std::min<double>((i + 1) * scale, from);
        first.push_back(std::size_t(low));
        for (int j = int(low); j < from && j < high; ++j) {
          double const part = std::min<double>(high, j + 1) - std::max<double>(low, j);
          weights.push_back(float(part / (high - low)));
        }
      } else {
        double const at = std::clamp((i + 0.5) * scale - 0.5, 0.0, double(from - 1)), whole = std::floor(at);
        first.push_back(std::size_t(whole));
        weights.push_back(float(1 - (at - whole)));
        if (at > whole) weights.push_back(float(at - whole));
      }
    }
    begin.push_back(weights.size());
  }

  /// Sums, for place `i`, the `n` values at `of(neighbour)`, weighted.
  template <class Of>
  void put(std::size_t i, Of&& of, std::size_t n, float* into) const {
    std::fill_n(into, n, 0.0f);
    for (std::size_t w = begin[i]; w < begin[i + 1]; ++w) {
      float const* const from = of(first[i] + w - begin[i]);
      for (std::size_t k = 0; k < n; ++k) into[k] += weights[w] * from[k];
    }
  }
};

}  // namespace data::detail

EDL_INLINE picture picture_of(example const& record, std::string_view name) {
  picture p;
  p.values = record.float_values(name);
  std::int64_t const height = record.integer("height"), width = record.integer("width");
  auto const size = std::int64_t(p.values.size());
  if (height < 1 || width < 1 || height > size || width > size / height || size % (height * width) != 0)
    throw data_error(
        fmt::format("the {} values of feature '{}' do not form a picture of height {} and width {}", size,
                    edl::printable(name, 64), height, width));
  p.extents = {int(height), int(width), int(size / (height * width))};
  return p;
}

EDL_INLINE void resize(picture const& from, shape to, std::span<float> into) {
  if (to.height < 1 || to.width < 1 || to.channels < 1 || into.size() != to.size())
    throw usage_error(fmt::format("a picture cannot be resized to {} × {} with {} channels in {} values",
                                  to.height, to.width, to.channels, into.size()));
  bool const colour = from.extents.channels == 1 && to.channels == 3,
             grey = from.extents.channels == 3 && to.channels == 1;
  if (!colour && !grey && from.extents.channels != to.channels)
    throw data_error(
        fmt::format("the picture has {} channels, and {} are wanted", from.extents.channels, to.channels));
  auto const channels = std::size_t(from.extents.channels), width = std::size_t(to.width),
             row = std::size_t(from.extents.width) * channels, narrow = width * channels;
  data::detail::resized_axis const down(from.extents.height, to.height), across(from.extents.width, to.width);
  std::vector<float> tall(row), flat(narrow);
  for (std::size_t y = 0; y < std::size_t(to.height); ++y) {
    down.put(y, [&](std::size_t j) { return from.values.data() + j * row; }, row, tall.data());
    float* const out = into.data() + y * width * std::size_t(to.channels);
    float* const wide = colour || grey ? flat.data() : out;
    for (std::size_t x = 0; x < width; ++x)
      across.put(x, [&](std::size_t j) { return tall.data() + j * channels; }, channels, wide + x * channels);
    for (std::size_t x = 0; colour && x < width; ++x) std::fill_n(out + 3 * x, 3, flat[x]);
    for (std::size_t x = 0; grey && x < width; ++x)
      out[x] = 0.299f * flat[3 * x] + 0.587f * flat[3 * x + 1] + 0.114f * flat[3 * x + 2];
  }
}

}  // namespace edl

namespace edl::data {
namespace detail {

inline constexpr std::uint64_t most_side = 65'535;

/// A library's error message about a file, as one line without control characters.
inline data_error picture_failure(std::string_view format, char const* said) {
  return data_error(fmt::format("{} is damaged: {}", format, edl::printable(said, 128)));
}

/// Allocates a picture after checking its size.
inline void shape_pixels(std::uint64_t height, std::uint64_t width, int channels, pixels& into) {
  if (height < 1 || width < 1 || height > most_side || width > most_side || height * width > most_places)
    throw data_error(fmt::format("claims {} × {} pixels; at most {} are read, and {} a side", height, width,
                                 most_places, most_side));
  into.extents = {int(height), int(width), channels};
  into.values.resize(into.extents.size());
}

// The libraries for PNG and JPEG report errors by longjmp. So all state lives in a struct that the calling
// function owns, and no destructor is skipped.

struct png_input {
  std::string_view left;
  pixels* into = nullptr;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<png_bytep> rows;
  std::uint64_t bits = 0;  // of a place in the file
  std::string refused;     // our own error, not the library's
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

/// Allocates the rows; false if the header claims too much.
inline bool png_room(png_input& of, std::size_t file_size) noexcept try {
  std::uint64_t const height = png_get_image_height(of.png, of.info),
                      width = png_get_image_width(of.png, of.info);
  // A byte of a deflated stream expands to at most 1,032 bytes.
  if (std::uint64_t const bits = height * width * of.bits;
      height <= most_side && width <= most_side && bits / 8 > (std::uint64_t(file_size) + 16) * 1032)
    throw data_error(
        fmt::format("claims {} × {} pixels, which {} bytes cannot hold", height, width, file_size));
  int const channels = png_get_color_type(of.png, of.info) & PNG_COLOR_MASK_COLOR ? 3 : 1;
  shape_pixels(height, width, channels, *of.into);
  for (std::size_t y = 0; y < height; ++y)
    of.rows.push_back(of.into->values.data() + y * width * std::size_t(channels));
  return true;
} catch (std::exception const& e) {
  of.refused = e.what();
  return false;
}

/// False if the library or this code rejects the file.
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
    png_error(of.png, "its rows have another size than its header gives");
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

/// The library only warns of missing or corrupt bytes, and leaves the rest of the picture grey: this makes it
/// an error.
inline void jpeg_warn(j_common_ptr of, int level) {
  int const code = of->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
                    code == JWRN_NOT_SEQUENTIAL))
    jpeg_fail(of);
}

/// Each scan covers the whole picture, but costs a file only a few bytes, so their number is limited.
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
  throw data_error(file.empty() ? "is empty" : "is not a PNG, JPEG or WebP file");
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
  std::string const reason = image.message;
  png_image_free(&image);
  if (!made) throw error(fmt::format("a PNG file cannot be made: {}", reason));
  file.resize(size);
  return file;
}

namespace detail {

class picture_reader final : public reader {
 public:
  explicit picture_reader(picture_folder const& from) : from_(from) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    if (shard != 0 || record >= from_.files_.size())
      throw data_error(
          fmt::format("{}: no picture {}: the data has {}", from_.directory_, record, from_.files_.size()));
    auto const& [of_class, name] = from_.files_[std::size_t(record)];
    std::string const path = from_.own_file(shard, record);
    constexpr std::uint64_t most_bytes = 256u << 20;
    try {
      decode_picture(read_all(path, most_bytes), pixels_);
    } catch (data_error const& e) {
      if (std::string_view(e.what()).starts_with(path)) throw;
      throw data_error(fmt::format("{}: {}", path, e.what()));
    }
    example_builder build{into};
    std::ranges::copy(pixels_.values, build.floats("image", pixels_.values.size()).begin());
    build.integer("height", pixels_.extents.height);
    build.integer("width", pixels_.extents.width);
    if (!from_.classes_.empty()) build.integer("label", of_class);
    build.bytes("file", name);
  }

 private:
  picture_folder const& from_;
  pixels pixels_;
};

/// Whether a nested folder is this directory or contains it, which is possible only through links.
inline bool leads_back(std::string const& directory, std::string const& folder) {
  std::error_code failure;
  auto const within = std::filesystem::canonical(directory, failure),
             to = std::filesystem::canonical(directory + "/" + folder, failure);
  return !failure && std::ranges::mismatch(to, within).in1 == to.end();
}

/// "a, b and 3 more".
inline std::string few_of(std::vector<std::string> const& names) {
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i > 0 ? ", " : "") + edl::printable(names[i], 64);
  return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

}  // namespace detail

EDL_INLINE picture_folder::picture_folder(std::string const& directory) : directory_(directory) {
  auto const top = detail::list_directory(directory);
  for (auto const& name : top.files)
    if (names_picture(name)) files_.push_back({0, name});
  bool const loose = !files_.empty();
  std::vector<std::string> no_classes, left_out;
  for (auto const& folder : top.folders) {
    if (detail::clearly_no_data(folder) || detail::leads_back(directory, folder)) {
      no_classes.push_back(folder);
      continue;
    }
    auto const inside = detail::list_directory(directory + "/" + folder);
    for (auto const& name : inside.files)
      if (names_picture(name))
        files_.push_back({std::uint32_t(classes_.size()), folder + "/" + name});
      else if (!detail::clearly_no_data(name))
        left_out.push_back(folder + "/" + name);
    for (auto const& name : inside.folders) left_out.push_back(folder + "/" + name + "/");
    classes_.push_back(folder);
  }
  if (!no_classes.empty())
    notes_.push_back(fmt::format("{}: {} {}: names that begin with _ or README, and links back, are not data",
                                 directory, detail::few_of(no_classes),
                                 no_classes.size() == 1 ? "is no class" : "are no classes"));
  if (!left_out.empty())
    notes_.push_back(fmt::format(
        "{}: {} left out: {}; .png, .jpg, .jpeg, .jpe, .jfif and .webp files of a class's folder "
        "are read, and no folders in it",
        directory, left_out.size() == 1 ? "1 entry is" : fmt::format("{} entries are", left_out.size()),
        detail::few_of(left_out)));
  if (loose && !classes_.empty())
    throw data_error(
        fmt::format("{}: has the picture {} beside folders of pictures; put it into the folder of its class",
                    directory, files_.front().name));
  std::vector<std::tuple<std::uint64_t, std::size_t>> order;
  for (std::size_t i = 0; i < files_.size() && !loose; ++i) {
    detail::content_digest drawn;
    drawn.add(files_[i].name);
    order.emplace_back(mix(drawn.value(), 0), i);
  }
  std::ranges::sort(order);
  std::vector<file> ordered;
  for (auto const& [drawn, i] : order) ordered.push_back(std::move(files_[i]));
  if (!loose) files_ = std::move(ordered);
  shards_.push_back({directory.substr(directory.find_last_of('/') + 1), files_.size()});
}

EDL_INLINE std::unique_ptr<reader> picture_folder::open() const {
  return std::make_unique<detail::picture_reader>(*this);
}

EDL_INLINE std::string picture_folder::own_file(std::size_t, std::uint64_t record) const {
  return directory_ + "/" + files_.at(std::size_t(record)).name;
}

EDL_INLINE std::uint64_t picture_folder::digest(std::size_t shard) const {
  if (shard != 0) return 0;
  detail::content_digest sum;
  char last[64];
  for (auto const& name : classes_) sum.add(name);
  for (auto const& [of_class, name] : files_) {
    detail::input_file const in(directory_ + "/" + name);
    // PNG's checksums are at the end, and the codes of JPEG and WebP depend on everything before them.
    auto const n = std::min<std::uint64_t>(sizeof last, in.size());
    in.read(in.size() - n, last, std::size_t(n));
    sum.add(name);
    sum.add(in.size());
    sum.add(std::string_view(last, std::size_t(n)));
  }
  return sum.value();
}

}  // namespace edl::data
