// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

/// The double of a GPU, for doubles of CUDA's libraries and for tests. It computes on the processor, in the
/// thread that calls, one piece of work at a time. It is as strict as a GPU, or stricter:
/// - device memory can be touched only while work of a stream runs: elsewhere, beyond its end and after it
/// was freed
///   the program crashes. Fresh memory is full of NaN;
/// - work is done as late as can be: when somebody waits for it. What was not waited for has not happened.
///   EDL_CUDA_DOUBLE=eager in the environment does it at once, so that a debugger shows who asked for it;
/// - a stream of one GPU is nothing for a thread that is at another. EDL_CUDA_DOUBLE_DEVICES in the
/// environment says how many there are (1), EDL_CUDA_DOUBLE_MEMORY how many bytes of memory (8 GiB);
/// - EDL_CUDA_DOUBLE_WHIMS in the environment names, between commas, what goes wrong besides; see `whim`;
/// - what a GPU would leave undefined ends the program with a message that begins with "cuda double:".
/// Thread safety: safe.
namespace edl::cuda_double {

/// Puts work into a stream, where device memory can be touched. It may go into the graph that the stream
/// records, to be done as often as that is launched. What of the host's it needs it must hold by value.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

/// The same for work that waits for others: it is tried when somebody looks whether it is done, until it says
/// that it is. Who waits for it holds up the whole process, and ends it after two minutes. Not recorded.
cudaError_t enqueue_attempt(cudaStream_t stream, std::function<bool()> work);

/// Ends the program: something that a GPU would leave undefined.
[[noreturn]] void fail(std::string const& what);

/// Whether all of it lies in one piece of device memory that was not freed.
bool on_device(void const* memory, std::size_t size);

bool capturing(cudaStream_t stream);

/// Whether calls that allocate or wait are forbidden to this thread, since something is recorded. They spoil
/// it.
bool forbidden();

/// Pieces of device memory that were not freed.
std::size_t allocations();

/// While it lives, device memory can be touched by everybody.
class access {
 public:
  access();
  ~access();
  access(access const&) = delete;
  access& operator=(access const&) = delete;
};

/// The number behind a whim's name and "=" (0 without one), where EDL_CUDA_DOUBLE_WHIMS names it now:
/// no_engines, no_algorithms  cuDNN, or cuBLASLt, has nothing for any problem
/// engines_forget             all of cuDNN's engines succeed, and leave a NaN
/// engines_fail=N             each of cuDNN's plans fails after N times
/// engine_tires=N             cuDNN's engine N takes a second from the fourth time on, by the clock of
/// `count_work` count_work                 events tell a millisecond for each piece of work that was done
/// backwards                  as `reverse`
/// captures_fail, graphs_fail the end of what is recorded fails; there is no memory for a graph
std::optional<int> whim(std::string_view name);

/// Time passes by the clock of `count_work`.
void spend(int milliseconds);

/// Whether blocks, and the threads of a block, run from the last to the first. Results must not depend on it.
void reverse(bool backwards);

/// A kernel: `thread` is called once per thread of the grid.
cudaError_t launch(cudaLaunchConfig_t const& config, std::function<void()> thread);

}  // namespace edl::cuda_double
