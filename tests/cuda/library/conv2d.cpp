// SPDX-License-Identifier: Apache-2.0
// What the real cuDNN makes of edl's graphs for a GPU that is only described: no GPU is needed, nothing is
// computed.
#include "edl/compute/device/cuda/library/conv2d.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "edl/core/error.hpp"
#include "text.hpp"

namespace {

/// An H200, in cuDNN's words.
constexpr std::string_view h200 = R"({
  "deviceName": "NVIDIA H200", "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "pciDeviceId": 0,
  "multiProcessorCount": 132, "warpSize": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "maxCtasPerSM": 32,
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
  "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "l2CacheSize": 62914560, "totalGlobalMem": 150754820096,
  "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "supportCoopLaunch": 1, "isTccDriver": 0
})";

using edl::activation, edl::conv_geometry, edl::precision;

struct described {
  explicit described(precision p) : shared{.precision = p, .measured = true, .scratch = {}, .rounded = {}} {
    queue.half = p == precision::bfloat16;
  }
  edl::cuda_kernels::queue queue;
  edl::cuda_library::products::shared_state shared;
  edl::cuda_library::convolutions convolutions{queue, shared, h200};
};

/// Null where cuDNN wants to know more of a GPU, or other things, than its version 9.19 does.
std::unique_ptr<described> described_or_skip(precision p) try {
  return std::make_unique<described>(p);
} catch (edl::error const& e) {
  MESSAGE("skipped: " << std::string(e.what()));
  return {};
}

}  // namespace

TEST_CASE("cuDNN has kernels that keep the precision for convolutions of every kind") {
  struct {
    conv_geometry g;
    int batch;
  } const cases[] = {
      {{{28, 28, 1}, {26, 26, 32}, 3, 1, 0, 1}, 512},  // one channel
      {{{26, 26, 32}, {24, 24, 64}, 3, 1, 0, 1}, 512},
      {{{32, 32, 3}, {32, 32, 64}, 3, 1, 1, 1}, 512},  // three
      {{{32, 32, 64}, {32, 32, 64}, 3, 1, 1, 1}, 512},
      {{{32, 32, 64}, {16, 16, 128}, 3, 2, 0, 1}, 512},  // a border that differs from end to end
      {{{32, 32, 64}, {16, 16, 128}, 1, 2, 0, 1}, 512},
      {{{32, 32, 3}, {31, 31, 24}, 2, 1, 0, 1}, 1000},  // an even kernel
      {{{16, 16, 64}, {16, 16, 64}, 3, 1, 1, 4}, 64},   // in groups
      {{{16, 16, 64}, {16, 16, 64}, 3, 1, 1, 64}, 64},  // depthwise
      {{{7, 6, 3}, {5, 4, 4}, 3, 1, 0, 1}, 3},          // small and odd
      {{{9, 8, 5}, {3, 3, 7}, 3, 2, 0, 1}, 1},          // places that the output leaves out
  };
  for (auto p : {precision::float32, precision::tf32, precision::bfloat16}) {
    auto const gpu = described_or_skip(p);
    if (!gpu) return;
    for (auto const& [g, batch] : cases)
      for (bool follows : {false, true}) {
        std::string const text =
            gpu->convolutions.describe(g, batch, follows ? activation::relu : activation::none, follows);
        CAPTURE(text);
        CHECK_FALSE(contains(text, "edl's own"));
        CHECK(contains(text, "with its epilogue") == follows);
        if (p == precision::float32) CHECK_FALSE(contains(text, "tensor cores"));
        CHECK_FALSE(contains(text, "rounds inputs"));
      }
  }
}

TEST_CASE("the convolutions of a residual network are done on tensor cores") {
  for (auto p : {precision::tf32, precision::bfloat16}) {
    auto const gpu = described_or_skip(p);
    if (!gpu) return;
    for (int channels : {64, 128, 256, 512}) {
      int const side = 32 * 64 / channels;
      std::string const text = gpu->convolutions.describe(
          {{side, side, channels}, {side, side, channels}, 3, 1, 1, 1}, 512, activation::relu, true);
      CAPTURE(text);
      std::size_t times = 0;
      for (std::size_t at = text.find("tensor cores"); at != std::string::npos;
           at = text.find("tensor cores", at + 1))
        ++times;
      CHECK(times == 3);
    }
  }
}
