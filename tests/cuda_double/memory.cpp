// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "state.hpp"

namespace edl::cuda_double {
namespace {

constexpr std::size_t alignment = 256;               // of what cudaMalloc gives
constexpr std::size_t guard = std::size_t{1} << 20;  // addresses before and behind it that nobody has
constexpr std::byte poison{0xff}, canary{0xa5};

std::size_t up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

std::size_t page() {
  static std::size_t const size = std::size_t(sysconf(_SC_PAGESIZE));
  return size;
}

void protect(int how) {
  for (auto& [memory, b] : all().blocks)
    if (mprotect(b.mapping, b.capacity, how)) fail("mprotect does not work here");
}

/// The piece that `memory` lies in, or the last one's end.
template <class Map>
auto piece(Map& pieces, void const* memory) {
  auto it = pieces.upper_bound(const_cast<std::byte*>(static_cast<std::byte const*>(memory)));
  return it == pieces.begin() ? pieces.end() : std::prev(it);
}

std::size_t left() {
  char const* const given = std::getenv("EDL_CUDA_DOUBLE_MEMORY");
  std::size_t const total = given ? std::strtoull(given, nullptr, 10) : all().total;
  return total - std::min(total, all().used);
}

std::size_t size_of(block const& b) { return b.size; }
std::size_t size_of(std::size_t size) { return size; }

template <class Map>
bool holds(Map& pieces, void const* memory, std::size_t size) {
  auto const it = piece(pieces, memory);
  if (it == pieces.end()) return false;
  auto const before = std::size_t(static_cast<std::byte const*>(memory) - it->first);
  return before <= size_of(it->second) && size <= size_of(it->second) - before;
}

/// Whether any of it lies in device memory.
bool touches_device(void const* memory, std::size_t size) {
  auto const* const first = static_cast<std::byte const*>(memory);
  for (auto const& [at, b] : all().blocks)
    if (first < at + b.size && at < first + size) return true;
  return false;
}

cudaError_t copy(void* to, void const* from, std::size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
  if (size == 0) return cudaSuccess;
  if (!to || !from) return note(cudaErrorInvalidValue);
  bool const into = on_device(to, size), out_of = on_device(from, size);
  if ((!into && touches_device(to, size)) || (!out_of && touches_device(from, size)))
    return note(cudaErrorInvalidValue);
  if (kind != cudaMemcpyDefault) {
    bool const to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool const from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (to_device != into || from_device != out_of) return note(cudaErrorInvalidValue);
  }
  bool const recorded = capturing(stream);
  if (!out_of && !recorded && !is_pinned(from, size)) {  // has been read on return
    auto const* const first = static_cast<std::byte const*>(from);
    std::vector<std::byte> held(first, first + size);
    return enqueue(stream, [to, held = std::move(held)] { std::memcpy(to, held.data(), held.size()); });
  }
  cudaError_t const error = enqueue(stream, [=] { std::memmove(to, from, size); });
  if (error == cudaSuccess && !into && !recorded && !is_pinned(to, size)) finish(stream);
  return error;
}

}  // namespace

bool on_device(void const* memory, std::size_t size) {
  std::lock_guard const hold(all().lock);
  return holds(all().blocks, memory, size);
}

bool is_pinned(void const* memory, std::size_t size) {
  return holds(all().pinned, memory, size) || holds(all().allocated, memory, size);
}

std::size_t allocations() {
  std::lock_guard const hold(all().lock);
  return all().blocks.size();
}

void check_ends() {
  for (auto const& [memory, b] : all().blocks) {
    std::byte const *const end = memory + b.size, *const last = b.mapping + b.capacity;
    if (!std::all_of(end, last, [](std::byte each) { return each == canary; }))
      fail("something was written behind the end of " + std::to_string(b.size) + " bytes of device memory");
  }
}

access::access() {
  all().lock.lock();
  if (all().accesses++ == 0) protect(PROT_READ | PROT_WRITE);
}

access::~access() {
  if (all().accesses == 1) protect(PROT_NONE);
  --all().accesses;
  all().lock.unlock();
}

}  // namespace edl::cuda_double

using namespace edl::cuda_double;

cudaError_t cudaMalloc(void** memory, std::size_t size) {
  std::lock_guard const hold(all().lock);
  if (!memory) return note(cudaErrorInvalidValue);
  *memory = nullptr;
  if (forbidden()) return note(cudaErrorStreamCaptureUnsupported);
  if (size == 0) return cudaSuccess;
  if (size > left()) return note(cudaErrorMemoryAllocation);
  // Its end is the end of a page.
  std::size_t const capacity = up(size, page());
  void* const mapping =
      mmap(nullptr, capacity + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return note(cudaErrorMemoryAllocation);
  auto* const first = static_cast<std::byte*>(mapping) + guard;
  mprotect(first, capacity, PROT_READ | PROT_WRITE);
  std::byte* const begin = first + capacity - up(size, alignment);
  std::memset(first, int(canary), capacity);
  std::memset(begin, int(poison), size);
  if (all().accesses == 0) mprotect(first, capacity, PROT_NONE);
  all().blocks[begin] = {size, capacity, first};
  all().used += size;
  *memory = begin;
  return cudaSuccess;
}

cudaError_t cudaMallocAsync(void** memory, std::size_t size, cudaStream_t) {
  return cudaMalloc(memory, size);
}

namespace {

void forget(void* memory) {
  auto const it = all().blocks.find(static_cast<std::byte*>(memory));
  block const b = it->second;
  // The addresses are never given out again, so that who uses them crashes.
  mmap(b.mapping, b.capacity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  all().used -= b.size;
  all().blocks.erase(it);
}

}  // namespace

cudaError_t cudaFree(void* memory) {
  std::lock_guard const hold(all().lock);
  if (!memory) return cudaSuccess;
  if (forbidden()) return note(cudaErrorStreamCaptureUnsupported);
  if (!all().blocks.contains(static_cast<std::byte*>(memory))) return note(cudaErrorInvalidValue);
  finish_all();
  forget(memory);
  return cudaSuccess;
}

// In the stream's order, and without waiting for others.
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  std::lock_guard const hold(all().lock);
  if (!memory || !all().blocks.contains(static_cast<std::byte*>(memory))) return note(cudaErrorInvalidValue);
  if (forbidden()) return note(cudaErrorStreamCaptureUnsupported);
  return enqueue(stream, [memory] { forget(memory); });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  std::lock_guard const hold(all().lock);
  *free = left();
  *total = all().total;
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, std::size_t size, unsigned) {
  std::lock_guard const hold(all().lock);
  if (!memory) return note(cudaErrorInvalidValue);
  if (forbidden()) return note(cudaErrorStreamCaptureUnsupported);
  *memory = std::aligned_alloc(page(), up(std::max<std::size_t>(size, 1), page()));
  if (!*memory) return note(cudaErrorMemoryAllocation);
  all().allocated[static_cast<std::byte*>(*memory)] = size;
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** memory, std::size_t size) { return cudaHostAlloc(memory, size, 0); }

cudaError_t cudaFreeHost(void* memory) {
  std::lock_guard const hold(all().lock);
  if (!memory) return cudaSuccess;
  if (forbidden()) return note(cudaErrorStreamCaptureUnsupported);
  finish_all();
  if (!all().allocated.erase(static_cast<std::byte*>(memory))) return note(cudaErrorInvalidValue);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* memory, std::size_t size, unsigned) {
  std::lock_guard const hold(all().lock);
  if (!memory || size == 0 || touches_device(memory, size)) return note(cudaErrorInvalidValue);
  if (forbidden()) return note(cudaErrorStreamCaptureUnsupported);
  auto* const first = static_cast<std::byte*>(memory);
  for (auto const* pieces : {&all().pinned, &all().allocated})
    for (auto const& [at, n] : *pieces)
      if (first < at + n && at < first + size) return note(cudaErrorHostMemoryAlreadyRegistered);
  all().pinned[first] = size;
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* memory) {
  std::lock_guard const hold(all().lock);
  if (forbidden()) return note(cudaErrorStreamCaptureUnsupported);
  finish_all();
  if (!all().pinned.erase(static_cast<std::byte*>(memory))) return note(cudaErrorHostMemoryNotRegistered);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  std::lock_guard const hold(all().lock);
  return copy(to, from, size, kind, stream);
}

cudaError_t cudaMemcpy(void* to, void const* from, std::size_t size, cudaMemcpyKind kind) {
  std::lock_guard const hold(all().lock);
  if (forbidden()) return note(cudaErrorStreamCaptureImplicit);
  cudaError_t const error = copy(to, from, size, kind, nullptr);
  return error == cudaSuccess ? cudaStreamSynchronize(nullptr) : error;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t size, cudaStream_t stream) {
  std::lock_guard const hold(all().lock);
  if (size == 0) return cudaSuccess;
  if (!on_device(to, size)) return note(cudaErrorInvalidValue);
  return enqueue(stream, [=] { std::memset(to, value, size); });
}

cudaError_t cudaMemset(void* to, int value, std::size_t size) {
  std::lock_guard const hold(all().lock);
  if (forbidden()) return note(cudaErrorStreamCaptureImplicit);
  cudaError_t const error = cudaMemsetAsync(to, value, size, nullptr);
  return error == cudaSuccess ? cudaStreamSynchronize(nullptr) : error;
}
