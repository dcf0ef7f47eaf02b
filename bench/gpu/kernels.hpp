// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Kernels that a GPU runs, with their times, by CUPTI (CUDA's library for tools), which is opened where it
/// is found, as EDL_CUPTI_LIBRARY names it or by the system's loader. Nodes of graphs are told one by one.
namespace bench {

/// The beginning of CUpti_ActivityKernel4 to 10, which is the same in all of them.
struct kernel_record {
  std::uint32_t kind;
  std::uint8_t caches[4];
  std::uint32_t partitions[2];
  std::uint64_t start, end, completed;
  std::uint32_t device, context, stream;
  std::int32_t grid[3], block[3], static_shared, dynamic_shared;
  std::uint32_t local_of_thread, local, correlation;
  std::int64_t grid_id;
  char const* name;
};
static_assert(offsetof(kernel_record, start) == 16 && offsetof(kernel_record, name) == 104);

class kernel_listing {
 public:
  struct kernel {
    std::string name;
    std::uint64_t start = 0, end = 0;  ///< ns
  };

  /// Begins to watch; before CUDA starts. What is missing stands in `why`.
  explicit kernel_listing(std::string& why) {
    void* library = nullptr;
    char const* const given = std::getenv("EDL_CUPTI_LIBRARY");
    for (std::string const& name :
         given ? std::vector<std::string>{given}
               : std::vector<std::string>{"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) {
      if ((library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))) break;
      if (why.empty()) why = ::dlerror();
    }
    if (!library) return;
    auto const find = [&]<class F>(F*& to, char const* name) {
      to = reinterpret_cast<F*>(::dlsym(library, name));
      if (!to) why = std::string("CUPTI has no ") + name;
      return to != nullptr;
    };
    int (*watch)(void (*)(std::uint8_t**, std::size_t*, std::size_t*),
                 void (*)(void*, std::uint32_t, std::uint8_t*, std::size_t, std::size_t)) = nullptr;
    int (*enable)(std::uint32_t) = nullptr;
    if (!find(watch, "cuptiActivityRegisterCallbacks") || !find(enable, "cuptiActivityEnable") ||
        !find(flush_, "cuptiActivityFlushAll") || !find(next_, "cuptiActivityGetNextRecord"))
      return;
    constexpr std::uint32_t kernels = 10;  // CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
    self() = this;
    int code = watch(lend, take);
    if (code == 0) code = enable(kernels);
    if (code != 0) why = "CUPTI refuses: error " + std::to_string(code);
    works_ = code == 0;
  }
  kernel_listing(kernel_listing const&) = delete;
  kernel_listing& operator=(kernel_listing const&) = delete;

  bool works() const { return works_; }

  /// Those that have ended since it was last asked, in the order of their starts.
  std::vector<kernel> taken() {
    flush_(0);
    std::lock_guard const hold(lock_);
    auto all = std::exchange(seen_, {});
    std::ranges::sort(all, {}, &kernel::start);
    return all;
  }

 private:
  static constexpr std::size_t room = std::size_t(4) << 20;

  static kernel_listing*& self() {
    static kernel_listing* it = nullptr;
    return it;
  }
  static void lend(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, room));
    *size = room;
    *most = 0;
  }
  static void take(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    kernel_listing& own = *self();
    std::lock_guard const hold(own.lock_);
    for (kernel_record* r = nullptr; valid > 0 && own.next_(buffer, valid, &r) == 0;)
      own.seen_.push_back({r->name ? r->name : "", r->start, r->end});
    std::free(buffer);
  }

  int (*flush_)(std::uint32_t) = nullptr;
  int (*next_)(std::uint8_t*, std::size_t, kernel_record**) = nullptr;
  std::mutex lock_;
  std::vector<kernel> seen_;
  bool works_ = false;
};

/// A kernel's name without its arguments, and of what is in its brackets not more than fits.
inline std::string readable(std::string const& mangled) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> const plain(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
  std::string name = status == 0 ? plain.get() : mangled;
  for (std::string_view const noise : {"void ", "edl::cuda_kernels::", "(anonymous namespace)::"})
    for (std::size_t at; (at = name.find(noise)) != std::string::npos;) name.erase(at, noise.size());
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    depth += name[i] == '<';
    depth -= name[i] == '>';
    if (name[i] == '(' && depth == 0) name.resize(i);
  }
  constexpr std::size_t most = 90;
  if (name.size() > most) name = name.substr(0, most - 3) + "...";
  return name;
}

/// Prints the kernels of a step, of which `all` has `steps`, in their order, each with its mean time, and
/// what lies between them. Where steps differ in number, only sums by names.
inline void print_kernels(std::vector<kernel_listing::kernel> const& all, int steps) {
  std::size_t const each = all.size() / std::size_t(steps);
  bool const alike = each * std::size_t(steps) == all.size() && [&] {
    for (std::size_t i = each; i < all.size(); ++i)
      if (all[i].name != all[i - each].name) return false;
    return true;
  }();
  if (alike && each > 0) {
    std::printf("| node | kernel | µs | µs before it |\n|---|---|---|---|\n");
    for (std::size_t i = 0; i < each; ++i) {
      double time = 0, gap = 0;
      for (std::size_t k = i; k < all.size(); k += each) {
        time += double(all[k].end - all[k].start) / 1e3 / steps;
        if (i > 0) gap += (double(all[k].start) - double(all[k - 1].end)) / 1e3 / steps;
      }
      std::printf("| %zu | %s | %.2f | %.2f |\n", i, readable(all[i].name).c_str(), time, gap);
    }
  } else {
    std::printf("steps differ: %zu kernels in %d of them\n", all.size(), steps);
  }
  struct sums {
    double time = 0;
    std::size_t calls = 0;
  };
  std::map<std::string, sums> by_name;
  double whole = 0;
  for (auto const& k : all) {
    double const time = double(k.end - k.start) / 1e3 / steps;
    by_name[readable(k.name)].time += time, ++by_name[readable(k.name)].calls;
    whole += time;
  }
  std::vector<std::pair<std::string, sums>> sorted(by_name.begin(), by_name.end());
  std::ranges::sort(sorted, std::ranges::greater(), [](auto const& s) { return s.second.time; });
  std::printf("\n| kernel | calls | µs of a step | |\n|---|---|---|---|\n");
  for (auto const& [name, s] : sorted)
    std::printf("| %s | %.1f | %.1f | %.1f %% |\n", name.c_str(), double(s.calls) / steps, s.time,
                100 * s.time / whole);
  std::printf("| all | %.1f | %.1f | |\n", double(all.size()) / steps, whole);
}

}  // namespace bench
