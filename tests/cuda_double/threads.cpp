// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>
#include <ucontext.h>

#include <csetjmp>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "state.hpp"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace edl::cuda_double {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool quick = false;  // sanitisers know swapcontext
#else
constexpr bool quick = true;  // swapcontext asks the kernel for the mask of signals, each time
#endif

/// A place in the execution of something, with a stack of its own.
struct place {
  ucontext_t context;
  jmp_buf jump;
  bool begun = false;
  void* known = nullptr;  // to the sanitiser of threads
};

void go(place& from, place& to) {
  if (!quick) {
#if defined(__SANITIZE_THREAD__)
    from.known = __tsan_get_current_fiber();
    if (!to.known) to.known = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(to.known, 0);
#endif
    swapcontext(&from.context, &to.context);
  } else if (_setjmp(from.jump) == 0) {
    from.begun = true;
    if (to.begun) _longjmp(to.jump, 1);
    setcontext(&to.context);
  }
}

constexpr std::size_t stack_size = 128 * 1024;

struct fiber {
  place at;
  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(stack_size);
};

enum class state { fresh, ready, at_barrier, in_warp, done };

struct thread_state {
  state now = state::fresh;
  fiber* on = nullptr;
  unsigned lanes = 0;            // it waits for, in its warp
  std::uint64_t values[2] = {};  // exchanged, by turns: nobody is more than one exchange ahead
  unsigned exchanges = 0;
};

/// The threads of one block. A fiber goes from one thread to the next until one must wait; then another fiber
/// takes over, so that a kernel without barriers is one loop.
class scheduler {
 public:
  void run(work const& thread) {
    thread_ = &thread;
    std::size_t const n = std::size_t(blockDim.x) * blockDim.y * blockDim.z;
    threads_.assign(n, {});
    fresh_ = 0;
    idle_.clear();
    for (auto& f : fibers_) idle_.push_back(f.get());
    for (std::size_t done = 0; done < n;) {
      if (fresh_ < n) {
        if (idle_.empty()) add();
        fiber* const f = idle_.back();
        idle_.pop_back();
        resume(f);
      } else if (!resume_ready()) {
        release();
      }
      done = 0;
      if (fresh_ == n)
        for (thread_state const& t : threads_) done += t.now == state::done;
    }
  }

  void wait(state why, unsigned lanes) {
    thread_state& own = threads_[current_];
    own.now = why;
    own.lanes = lanes;
    if (why == state::in_warp && complete(current_)) {
      release_warp(current_);
      own.now = state::ready;
      return;
    }
    fiber* const f = own.on;
    go(f->at, main_);
  }

  std::uint64_t exchange(unsigned lanes, std::uint64_t value, unsigned from, bool own) {
    std::size_t const warp = current_ / 32 * 32;
    unsigned const turn = exchange(lanes, value);
    if (own) return value;
    if (!(lanes >> from & 1)) fail("a shuffle from a lane that its mask does not name");
    return threads_[warp + from].values[turn];
  }

  unsigned match(unsigned lanes, std::uint64_t value) {
    std::size_t const warp = current_ / 32 * 32;
    unsigned const turn = exchange(lanes, value);
    unsigned same = 0;
    for (unsigned lane = 0; lane < 32 && warp + lane < threads_.size(); ++lane)
      if ((lanes >> lane & 1) && threads_[warp + lane].values[turn] == value) same |= 1u << lane;
    return same;
  }

 private:
  /// Shows a value to the other lanes; which of a thread's it is.
  unsigned exchange(unsigned lanes, std::uint64_t value) {
    if (!(lanes >> current_ % 32 & 1)) fail("a shuffle by a lane that its mask does not name");
    thread_state& t = threads_[current_];
    unsigned const turn = t.exchanges++ % 2;
    t.values[turn] = value;
    wait(state::in_warp, lanes);
    return turn;
  }

  static scheduler* starting;

  static void enter() {
    scheduler* const s = starting;
    fiber* const self = s->fibers_.back().get();
    for (;;) s->go_on(self);
  }

  /// Threads that nobody has begun, one after the other; then the fiber has nothing to do.
  void go_on(fiber* self) {
    while (fresh_ < threads_.size()) {
      std::size_t const t = all().backwards ? threads_.size() - 1 - fresh_ : fresh_;
      ++fresh_;
      threads_[t].on = self;
      threads_[t].now = state::ready;
      enter_thread(t);
      (*thread_)();
      threads_[current_].now = state::done;
    }
    idle_.push_back(self);
    go(self->at, main_);
  }

  void add() {
    fibers_.push_back(std::make_unique<fiber>());
    fiber& f = *fibers_.back();
    getcontext(&f.at.context);
    f.at.context.uc_stack.ss_sp = f.stack.get();
    f.at.context.uc_stack.ss_size = stack_size;
    f.at.context.uc_link = nullptr;
    makecontext(&f.at.context, &scheduler::enter, 0);
    idle_.push_back(&f);
    starting = this;
  }

  void resume(fiber* f) { go(main_, f->at); }

  void enter_thread(std::size_t t) {
    current_ = t;
    auto const i = unsigned(t);
    threadIdx = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
  }

  bool resume_ready() {
    bool any = false;
    std::size_t const n = threads_.size();
    for (std::size_t i = 0; i < n; ++i) {
      std::size_t const t = all().backwards ? n - 1 - i : i;
      if (threads_[t].now != state::ready) continue;
      any = true;
      enter_thread(t);
      resume(threads_[t].on);
    }
    return any;
  }

  /// Whether all lanes that thread `t` waits for wait for each other.
  bool complete(std::size_t t) const {
    std::size_t const warp = t / 32 * 32;
    unsigned const lanes = threads_[t].lanes;
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (!(lanes >> lane & 1)) continue;
      if (warp + lane >= threads_.size()) {
        if (lanes == 0xffff'ffff) continue;  // the last warp of a block is not full
        fail("a mask names lanes that the block does not have");
      }
      thread_state const& other = threads_[warp + lane];
      if (other.now == state::done) fail("a shuffle or __syncwarp waits for a thread that has ended");
      if (other.now != state::in_warp) return false;
      if (other.lanes != lanes) fail("lanes of a warp meet with different masks");
      if (other.exchanges != threads_[t].exchanges) fail("lanes of a warp meet in different shuffles");
    }
    return true;
  }

  void release_warp(std::size_t t) {
    std::size_t const warp = t / 32 * 32;
    unsigned const lanes = threads_[t].lanes;
    for (unsigned lane = 0; lane < 32 && warp + lane < threads_.size(); ++lane)
      if (lanes >> lane & 1) threads_[warp + lane].now = state::ready;
  }

  /// Nobody can go on: all are at the barrier, or it is a deadlock.
  void release() {
    for (thread_state const& t : threads_)
      if (t.now == state::in_warp)
        fail("lanes wait for others of their warp, which have ended or are at a barrier");
    for (thread_state const& t : threads_)
      if (t.now == state::done) fail("__syncthreads, after some threads of the block have ended");
    for (thread_state& t : threads_) t.now = state::ready;
  }

  work const* thread_ = nullptr;
  std::vector<thread_state> threads_;
  std::vector<std::unique_ptr<fiber>> fibers_;
  std::vector<fiber*> idle_;
  std::size_t fresh_ = 0, current_ = 0;
  place main_;
};

scheduler* scheduler::starting = nullptr;

scheduler& the_scheduler() {
  static auto* const it = new scheduler;
  return *it;
}

void run(dim3 grid, dim3 block, work const& thread) {
  gridDim = grid;
  blockDim = block;
  std::size_t const n = std::size_t(grid.x) * grid.y * grid.z;
  bool const before = all().backwards;
  if (whim("backwards")) all().backwards = true;
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t const b = all().backwards ? n - 1 - i : i;
    blockIdx = {unsigned(b % grid.x), unsigned(b / grid.x % grid.y), unsigned(b / grid.x / grid.y)};
    the_scheduler().run(thread);
  }
  all().backwards = before;
}

}  // namespace

void reverse(bool backwards) {
  std::lock_guard const hold(all().lock);
  all().backwards = backwards;
}

void wait_for_block() { the_scheduler().wait(state::at_barrier, 0); }
void wait_for_warp(unsigned lanes) { the_scheduler().wait(state::in_warp, lanes); }

std::uint64_t exchange(unsigned lanes, std::uint64_t value, unsigned from, bool own) {
  return the_scheduler().exchange(lanes, value, from, own);
}

unsigned match(unsigned lanes, std::uint64_t value) { return the_scheduler().match(lanes, value); }

cudaError_t launch(cudaLaunchConfig_t const& config, work thread) {
  dim3 const g = config.gridDim, b = config.blockDim;
  bool const good = g.x > 0 && g.x <= 0x7fff'ffff && g.y > 0 && g.y < 65536 && g.z > 0 && g.z < 65536 &&
                    b.x > 0 && b.y > 0 && b.z > 0 && b.z <= 64 && std::size_t(b.x) * b.y * b.z <= 1024;
  if (!good) return note(cudaErrorInvalidConfiguration);
  int here = 0;
  cudaGetDevice(&here);
  if (config.stream && config.stream->device != here) return note(cudaErrorInvalidResourceHandle);
  if (config.dynamicSmemBytes != 0) fail("shared memory of a size known only when a kernel is launched");
  return enqueue(config.stream, [g, b, thread = std::move(thread)] { run(g, b, thread); });
}

}  // namespace edl::cuda_double
