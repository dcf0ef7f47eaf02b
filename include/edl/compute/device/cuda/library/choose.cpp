// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/choose.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <limits>

#include "edl/compute/device/cuda/library/check.hpp"

namespace edl::cuda_library {
namespace {

struct event {
  event() { check(cudaEventCreate(&at), "making an event"); }
  event(event const&) = delete;
  event& operator=(event const&) = delete;
  ~event() { (void)cudaEventDestroy(at); }
  cudaEvent_t at = nullptr;
};

}  // namespace

bool recording(cuda_kernels::queue const& q) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(q.stream, &status), "asking whether a graph is recorded");
  return status != cudaStreamCaptureStatusNone;
}

met_while_recording::met_while_recording(std::string const& problem)
    : error("GPU: " + problem + ", is first met while a step is recorded, when nothing can be tried") {}

std::size_t fastest(cuda_kernels::queue const& q, std::size_t n,
                    std::function<void(std::size_t)> const& run) {
  event const begin, end;
  std::size_t best = n;
  float least = std::numeric_limits<float>::infinity();
  std::exception_ptr last;
  for (std::size_t i = 0; i < n; ++i) try {
      run(i);
      std::array<float, 3> milliseconds{};
      for (float& each : milliseconds) {
        check(cudaEventRecord(begin.at, q.stream), "measuring");
        run(i);
        check(cudaEventRecord(end.at, q.stream), "measuring");
        check(cudaEventSynchronize(end.at), "measuring");
        check(cudaEventElapsedTime(&each, begin.at, end.at), "measuring");
      }
      std::ranges::sort(milliseconds);
      if (best == n || milliseconds[1] < least) best = i, least = milliseconds[1];
    } catch (error const&) {
      last = std::current_exception();
    }
  if (best == n) std::rethrow_exception(last);
  return best;
}

}  // namespace edl::cuda_library
