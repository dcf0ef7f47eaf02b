// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/synthetic.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/random.hpp"

namespace edl::data {
namespace detail {

struct point {
  float x, y;
};

/// A digit, drawn as one line through points of the unit square, y downwards.
struct glyph {
  std::array<point, 13> points;
  int count;
};

inline constexpr std::array<glyph, 10> glyphs{{
    {{{{.50f, .07f},
       {.68f, .13f},
       {.77f, .32f},
       {.78f, .50f},
       {.77f, .68f},
       {.68f, .87f},
       {.50f, .93f},
       {.32f, .87f},
       {.23f, .68f},
       {.22f, .50f},
       {.23f, .32f},
       {.32f, .13f},
       {.50f, .07f}}},
     13},
    {{{{.34f, .26f}, {.52f, .07f}, {.52f, .93f}}}, 3},
    {{{{.22f, .28f},
       {.30f, .12f},
       {.50f, .07f},
       {.70f, .14f},
       {.75f, .31f},
       {.65f, .49f},
       {.40f, .71f},
       {.22f, .91f},
       {.80f, .91f}}},
     9},
    {{{{.24f, .13f},
       {.50f, .07f},
       {.72f, .17f},
       {.70f, .38f},
       {.46f, .48f},
       {.72f, .58f},
       {.76f, .78f},
       {.52f, .93f},
       {.22f, .86f}}},
     9},
    {{{{.62f, .93f}, {.62f, .07f}, {.20f, .64f}, {.82f, .64f}}}, 4},
    {{{{.74f, .08f},
       {.30f, .08f},
       {.27f, .45f},
       {.52f, .40f},
       {.74f, .52f},
       {.76f, .74f},
       {.54f, .92f},
       {.24f, .86f}}},
     8},
    {{{{.66f, .07f},
       {.40f, .26f},
       {.26f, .56f},
       {.30f, .82f},
       {.50f, .93f},
       {.72f, .82f},
       {.74f, .62f},
       {.54f, .50f},
       {.29f, .62f}}},
     9},
    {{{{.20f, .09f}, {.80f, .09f}, {.42f, .93f}}}, 3},
    {{{{.50f, .48f},
       {.30f, .36f},
       {.30f, .16f},
       {.50f, .07f},
       {.70f, .16f},
       {.70f, .36f},
       {.50f, .48f},
       {.26f, .62f},
       {.26f, .84f},
       {.50f, .93f},
       {.74f, .84f},
       {.74f, .62f},
       {.50f, .48f}}},
     13},
    {{{{.72f, .34f},
       {.52f, .48f},
       {.30f, .38f},
       {.29f, .17f},
       {.50f, .07f},
       {.70f, .16f},
       {.72f, .40f},
       {.66f, .70f},
       {.50f, .93f}}},
     9},
}};

inline float squared_distance(point p, point a, point b) {
  float const dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  float const along =
      length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0f, 1.0f) : 0.0f;
  float const x = p.x - a.x - along * dx, y = p.y - a.y - along * dy;
  return x * x + y * y;
}

inline constexpr std::size_t digit_side = 28, picture_side = 32, colours = 3;

class synthetic_reader final : public reader {
 public:
  synthetic_reader(synthetic_options const& options, std::vector<shard> const& shards)
      : options_(options), shards_(shards) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    if (shard >= shards_.size() || record >= shards_[shard].records)
      throw data_error(fmt::format("no record {} in shard {} of the synthetic set", record, shard));
    example_builder build{into};
    std::uint64_t const index = shard * options_.records_per_shard + record;
    if (options_.pictures)
      build.integer("label", draw_picture(options_.seed, index,
                                          build.floats("image", picture_side * picture_side * colours)));
    else
      build.integer("label",
                    draw_digit(options_.seed, index, build.floats("image", digit_side * digit_side)));
  }

 private:
  synthetic_options options_;
  std::vector<shard> const& shards_;
};

}  // namespace detail

EDL_INLINE int draw_digit(std::uint64_t seed, std::uint64_t index, std::span<float> image) {
  constexpr std::size_t side = detail::digit_side;
  if (image.size() < side * side)
    throw error(fmt::format("a digit has {} pixels, room is for {}", side * side, image.size()));
  constexpr std::uint64_t purpose = 0x6469676974;  // keeps these draws apart from others of the same seed
  random_stream const random = random_stream{seed, 0}.child(purpose).child(index);
  random_stream const noise = random.child(1);
  std::uint64_t drawn = 0;
  auto const between = [&](float least, float most) {
    return least + (most - least) * random.uniform(drawn++);
  };
  int const label = int(random.below(10, 1'000));

  float const angle = between(-0.24f, 0.24f), shear = between(-0.2f, 0.2f);
  float const width = 20 * between(0.75f, 1.1f), height = 20 * between(0.8f, 1.1f);
  float const left = 14 + between(-2.5f, 2.5f), top = 14 + between(-2.5f, 2.5f);
  float const thick = between(0.7f, 1.7f), ink = between(170, 255), grain = between(10, 70);
  float const bend = between(-0.06f, 0.06f), wave = between(0.5f, 1.2f), phase = between(0, 1);
  float const cosine = std::cos(angle), sine = std::sin(angle);
  auto const place = [&](detail::point p) {
    float const x = p.x - 0.5f + bend * std::sin(2 * std::numbers::pi_v<float> * (wave * p.y + phase));
    float const y = p.y - 0.5f;
    float const u = width * (x - shear * y), v = height * y;
    return detail::point{left + cosine * u - sine * v, top + sine * u + cosine * v};
  };

  auto const& glyph = detail::glyphs[std::size_t(label)];
  std::array<detail::point, 13> line{};
  for (std::size_t i = 0; i < std::size_t(glyph.count); ++i) {
    auto const& p = glyph.points[i];
    line[i] = place({p.x + between(-0.025f, 0.025f), p.y + between(-0.025f, 0.025f)});
  }
  // A scratch, so that the amount of ink alone does not reveal the digit.
  detail::point const from{between(0, 28), between(0, 28)};
  detail::point const to{from.x + between(-6, 6), from.y + between(-6, 6)};
  float const scratch = between(0, 160);

  for (std::size_t i = 0; i < side * side; i += 4) {
    auto const bits = noise.block(i / 4);
    for (std::size_t k = 0; k < 4; ++k) {
      detail::point const p{float((i + k) % side), float((i + k) / side)};
      float nearest = detail::squared_distance(p, line[0], line[1]);
      for (std::size_t s = 2; s < std::size_t(glyph.count); ++s)
        nearest = std::min(nearest, detail::squared_distance(p, line[s - 1], line[s]));
      float const stroke = ink * std::clamp(thick + 0.5f - std::sqrt(nearest), 0.0f, 1.0f);
      float const other =
          scratch * std::clamp(1.2f - std::sqrt(detail::squared_distance(p, from, to)), 0.0f, 1.0f);
      float const speck = grain * (float(bits[k] & 0xFFFF) + float(bits[k] >> 16) - 65535) / 65536;
      image[i + k] = std::floor(std::clamp(std::max(stroke, other) + speck, 0.0f, 255.0f));
    }
  }
  return label;
}

EDL_INLINE int draw_picture(std::uint64_t seed, std::uint64_t index, std::span<float> picture) {
  constexpr std::size_t side = detail::picture_side, inner = detail::digit_side, edge = (side - inner) / 2;
  if (picture.size() < side * side * detail::colours)
    throw error(fmt::format("a picture has {} values, room is for {}", side * side * detail::colours,
                            picture.size()));
  std::array<float, inner * inner> digit{};
  int const label = draw_digit(seed, index, digit);
  constexpr std::uint64_t purpose = 0x636f6c6f7572;  // keeps these draws apart from the digits'
  random_stream const random = random_stream{seed, 0}.child(purpose).child(index);
  std::array<float, detail::colours> ink{}, ground{}, far{};
  for (std::size_t c = 0; c < detail::colours; ++c) {
    ground[c] = 255 * random.uniform(3 * c);
    far[c] = std::clamp(ground[c] + 60 * (random.uniform(3 * c + 1) - 0.5f), 0.0f, 255.0f);
    // About half of the range away from the background, so that it is visible.
    ink[c] = std::fmod(ground[c] + 90 + 75 * random.uniform(3 * c + 2), 255.0f);
  }
  for (std::size_t y = 0; y < side; ++y)
    for (std::size_t x = 0; x < side; ++x) {
      bool const within = y >= edge && y < edge + inner && x >= edge && x < edge + inner;
      float const shade = within ? digit[(y - edge) * inner + x - edge] / 255 : 0;
      float const across = float(x + y) / float(2 * side - 2);
      for (std::size_t c = 0; c < detail::colours; ++c) {
        float const behind = ground[c] + across * (far[c] - ground[c]);
        picture[(y * side + x) * detail::colours + c] = std::floor(behind + shade * (ink[c] - behind));
      }
    }
  return label;
}

EDL_INLINE synthetic_source::synthetic_source(synthetic_options const& options) : options_(options) {
  if (options_.records < 1 || options_.records_per_shard < 1)
    throw usage_error("a synthetic data set needs at least one record, and one per shard");
  for (std::uint64_t first = 0; first < options_.records; first += options_.records_per_shard)
    shards_.push_back({fmt::format("synthetic-{:05}", shards_.size()),
                       std::min(options_.records_per_shard, options_.records - first)});
}

EDL_INLINE std::unique_ptr<reader> synthetic_source::open() const {
  return std::make_unique<detail::synthetic_reader>(options_, shards_);
}

EDL_INLINE std::uint64_t synthetic_source::digest(std::size_t shard) const {
  detail::content_digest sum;
  for (std::uint64_t const number : {options_.seed, options_.records_per_shard, std::uint64_t(shard)})
    sum.add(number);
  if (options_.pictures) sum.add(std::uint64_t{1});
  return sum.value();
}

}  // namespace edl::data
