// SPDX-License-Identifier: Apache-2.0
// What a GPU does for sums with others.
#include <fmt/format.h>

#include <cstring>

#include "edl/compute/device/cuda/library/check.hpp"
#include "edl/compute/device/cuda/library/engine.hpp"
#include "edl/compute/device/cuda/library/nccl.hpp"
#include "edl/compute/device/cuda/library/nccl_communicator.hpp"
#include "edl/core/error.hpp"

namespace edl::cuda_library {
namespace {

nccl const& need_nccl() {
  std::string why;
  nccl const* const it = nccl::open(why);
  if (!it) throw error(why);
  return *it;
}

}  // namespace

gpu_identity engine::identity() {
  gpu_identity self;
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, index_), "reading its properties");
  static_assert(sizeof(properties.uuid.bytes) == sizeof(self.uuid));
  std::memcpy(self.uuid.data(), properties.uuid.bytes, sizeof(self.uuid));
  nccl const* const with = nccl::open(self.lacking);
  if (!with) return self;
  int version = 0;
  if (with->version(&version) != nccl::success) version = 0;
  if (version < nccl::least_version)
    self.lacking =
        fmt::format("NCCL has version {}, but edl needs 2.14 ({}) or later", version, nccl::least_version);
  else
    self.nccl = version;
  return self;
}

gpu_meeting engine::draw_meeting() {
  nccl const& with = need_nccl();
  nccl::unique_id id;
  with.check(with.draw(&id), "drawing a place to meet");
  gpu_meeting where;
  std::memcpy(where.data(), &id, sizeof(id));
  return where;
}

std::unique_ptr<communicator> engine::join(gpu_meeting const& where, int size, int rank) {
  use();
  return std::make_unique<nccl_communicator>(
      nccl_communicator::options{.with = need_nccl(),
                                 .processors = queue_.processors,
                                 .where = where,
                                 .size = size,
                                 .rank = rank,
                                 .point = [this](int mark) { return point(mark); }});
}

cudaEvent_t engine::point(int mark) {
  auto const number = std::size_t(mark);
  if (points_.size() <= number) points_.resize(number + 1);
  if (!points_[number])
    check(cudaEventCreateWithFlags(&points_[number], cudaEventDisableTiming), "making an event");
  return points_[number];
}

void engine::mark(int number) {
  if (recorded_) {
    recorded_->push_back(end_piece(number));
    begin_piece();
  } else {
    check(cudaEventRecord(point(number), stream_), "marking a point of a step");
  }
}

void engine::await(int number) { check(cudaEventSynchronize(point(number)), "computing"); }

void engine::subtract(in a, in b, out to) {
  cuda_kernels::subtract(queue_, to.size(), a.data(), b.data(), to.data());
}

void engine::divide(out values, float by) { cuda_kernels::divide(queue_, values.size(), values.data(), by); }

void engine::add_divided(in x, float by, out to) {
  cuda_kernels::add_divided(queue_, to.size(), x.data(), by, to.data());
}

}  // namespace edl::cuda_library
