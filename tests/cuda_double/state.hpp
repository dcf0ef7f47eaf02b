// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "device.hpp"

namespace edl::cuda_double {

using work = std::function<void()>;
using attempt = std::function<bool()>;  // true: it is done

/// What is being recorded.
struct recording {
  CUstream_st* origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread = std::this_thread::get_id();
  bool spoiled = false;
  std::shared_ptr<std::vector<work>> steps = std::make_shared<std::vector<work>>();
  std::map<CUstream_st*, std::size_t>
      joined;  // other streams, and the step that the origin has not waited for
};

/// A point in the order of a stream's work.
struct mark {
  CUstream_st* stream;
  bool reached = false;
  double seconds = 0;
  std::shared_ptr<recording> recorded;  // in whose graph it is a point, and
  std::size_t step = 0;                 // the steps before it
};

struct block {
  std::size_t size, capacity;  // as asked for, and of the mapping without its guards
  std::byte* mapping;
};

/// All that the runtime knows. Its lock is held by everything that is done.
struct runtime {
  std::recursive_mutex lock;
  std::map<std::byte*, block> blocks;
  std::size_t used = 0, total = std::size_t{8} << 30;
  std::map<std::byte*, std::size_t> pinned;     // by cudaHostRegister
  std::map<std::byte*, std::size_t> allocated;  // by cudaHostAlloc
  std::set<CUstream_st*> streams;
  std::set<CUevent_st*> events;
  std::set<recording*> recordings;
  int accesses = 0;
  int spent = 0;  ///< milliseconds, by the clock of `count_work`
  bool eager = false, backwards = false;
  int devices = 1;

  runtime();
};

runtime& all();

/// Notes an error for cudaGetLastError, and returns it.
cudaError_t note(cudaError_t error);

void check_ends();  ///< that nothing was written behind one; where device memory can be touched
bool is_pinned(void const* memory, std::size_t size);
void finish(CUstream_st* stream);  ///< its work, and what that waits for
void finish_all();

}  // namespace edl::cuda_double

struct CUstream_st {
  bool blocking = true;
  int device = 0;
  std::deque<edl::cuda_double::attempt> waiting;
  std::shared_ptr<edl::cuda_double::recording> recorded;
};
struct CUevent_st {
  bool timed = true;
  std::shared_ptr<edl::cuda_double::mark> at;
};
struct CUgraph_st {
  std::shared_ptr<std::vector<edl::cuda_double::work>> steps;
};
struct CUgraphExec_st {
  std::shared_ptr<std::vector<edl::cuda_double::work>> steps;
};
