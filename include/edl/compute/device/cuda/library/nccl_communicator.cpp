// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/nccl_communicator.hpp"

#include <cstring>
#include <utility>

#include "edl/compute/device/cuda/library/check.hpp"
#include "edl/core/error.hpp"

namespace edl::cuda_library {
namespace {

constexpr int first_of_all = -1;  // a stream's priority: the sums' few kernels go before those that compute

}  // namespace

nccl_communicator::nccl_communicator(options o) : options_(std::move(o)) {
  static_assert(sizeof(nccl::unique_id) == std::tuple_size_v<gpu_meeting>);
  try {
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, first_of_all), "making a stream");
    check(cudaEventCreateWithFlags(&end_, cudaEventDisableTiming), "making an event");
    queue_ = {.stream = stream_, .half = false, .step = nullptr, .processors = options_.processors};
    nccl::unique_id id;
    std::memcpy(&id, options_.where.data(), sizeof(id));
    nccl::config how;
    options_.with.check(options_.with.join(&comm_, options_.size, id, options_.rank, &how), "joining GPUs");
  } catch (...) {
    end();
    throw;
  }
}

nccl_communicator::~nccl_communicator() { end(); }

// Its kernels leave a sum that is aborted, so that the stream comes to its end.
void nccl_communicator::end() noexcept {
  if (comm_) (void)options_.with.abort(comm_);
  if (stream_) {
    (void)cudaStreamSynchronize(stream_);
    (void)cudaStreamDestroy(stream_);
  }
  if (end_) (void)cudaEventDestroy(end_);
}

bool nccl_communicator::ready() {
  int state = nccl::success;
  options_.with.check(options_.with.state(comm_, &state), "asking for errors");
  options_.with.check(state, "summing between GPUs");
  return state == nccl::success;
}

void nccl_communicator::sum(std::span<float> values, float weight, int mark) {
  if (values.empty()) return;
  check(cudaStreamWaitEvent(stream_, options_.point(mark), 0), "waiting for gradients");
  if (weight == 0)
    check(cudaMemsetAsync(values.data(), 0, values.size_bytes(), stream_), "zeroing memory");
  else
    cuda_kernels::weigh(queue_, values.size(), values.data(), weight);
  marked_ = false;
  options_.with.check(options_.with.all_reduce(values.data(), values.data(), values.size(), nccl::float32,
                                               nccl::sum, comm_, stream_),
                      "summing between GPUs");
}

bool nccl_communicator::done() {
  if (!ready()) return false;
  if (!marked_) {
    check(cudaEventRecord(end_, stream_), "marking the end of sums");
    marked_ = true;
  }
  cudaError_t const state = cudaEventQuery(end_);
  if (state == cudaErrorNotReady) return false;
  check(state, "summing between GPUs");
  return ready();  // an error that came meanwhile
}

}  // namespace edl::cuda_library
