// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/operand.hpp"

#include "edl/compute/device/cuda/library/check.hpp"

namespace edl::cuda_library {
namespace {

constexpr std::size_t access = 16;  // bytes that kernels read at once

}  // namespace

operand operand::matrix(cuda_kernels::queue const& q, float const* variable, std::uint16_t const* rounded,
                        std::size_t elements, std::size_t row, room& r) {
  operand o;
  std::size_t const size = q.half ? 2 : sizeof(float);
  o.at_ = q.half ? static_cast<void const*>(rounded) : variable;
  o.unrounded_ = o.at_ ? nullptr : variable;
  o.bytes_ = elements * size;
  o.copied_ = !o.at_ || (alignment_of(o.at_) < access && row * size % access == 0);
  if (o.copied_) o.room_ = r.add(o.bytes_);
  return o;
}

operand operand::vector(cuda_kernels::queue const& q, float const* variable, std::uint16_t const* rounded,
                        std::size_t elements, room& r) {
  return matrix(q, variable, rounded, elements, access, r);
}

void const* operand::place(cuda_kernels::queue const& q, std::byte* scratch) const {
  if (!copied_) return at_;
  std::byte* const to = scratch + room_;
  if (unrounded_)
    cuda_kernels::round(q, unrounded_, reinterpret_cast<std::uint16_t*>(to), bytes_ / 2);
  else
    check(cudaMemcpyAsync(to, at_, bytes_, cudaMemcpyDeviceToDevice, q.stream), "aligning a variable");
  return to;
}

}  // namespace edl::cuda_library
