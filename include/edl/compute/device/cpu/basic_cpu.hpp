// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/compute/device/buffer.hpp"
#include "edl/compute/device/cpu/choices.hpp"
#include "edl/compute/device/cpu/options.hpp"
#include "edl/compute/device/cpu/team.hpp"
#include "edl/compute/device/device.hpp"

namespace edl {

namespace detail {

/// State that a library's kernels keep between steps; each library derives its own.
struct kernel_store {
  virtual ~kernel_store() = default;
};

}  // namespace detail

/// Some cores of this processor, with workspace, so that an operation allocates nothing after its first call.
/// Equal builds, machines, kernels and numbers of threads give equal bits, because work is divided by the
/// number of threads alone. Movable. Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class T>
class basic_cpu final : public basic_backend<T> {
 public:
  using in = view<T>;
  using out = std::span<T>;
  using backend = basic_backend<T>;
  using options = cpu_options;

  static std::shared_ptr<basic_cpu> open(options const& o) { return std::make_shared<basic_cpu>(o); }

  basic_cpu() : basic_cpu(options{}) {}
  explicit basic_cpu(options o)
      : team_(o.threads),
        precision_(o.precision),
        keeps_(o.keep_kernels),
        choices_(supported(o).kernels, team_.size(), std::move(o.kernel_cache)),
        threads_(std::size_t(team_.size())) {
    for (auto& t : threads_) t.workspace = buffer(packed_left + packed_right);
  }

  /// Elements of the two operands that a product packs at a time: one block for the second-level cache, one
  /// for the next level.
  static constexpr std::size_t packed_left = 64 * 1024, packed_right = 160 * 1024;

  std::span<T> left(int thread = 0) {
    return threads_[std::size_t(thread)].workspace.span().first(packed_left);
  }
  std::span<T> right(int thread = 0) {
    return threads_[std::size_t(thread)].workspace.span().subspan(packed_left);
  }

  static constexpr std::size_t rooms = 8;

  /// Memory that grows to the largest size requested so far; `rooms` of them per thread.
  std::span<T> room(int thread, std::size_t which, std::size_t size) {
    buffer& b = threads_[std::size_t(thread)].memory[which];
    if (b.size() < size) {
      b = {};  // first, so that both are not held at once
      b = buffer(size);
    }
    return b.span().first(size);
  }

  /// See detail::kernel_choices. Operations call this while they hold no room.
  template <class Run, class Right>
  int pick(detail::kernel_key key, std::span<std::string_view const> ways, int rule, Run&& run,
           Right&& right) {
    key.bfloat16 = rounds();
    std::size_t const before = choices_.measurements();
    int const way = choices_.pick(key, ways, rule, run, right);
    if (choices_.measurements() != before)  // frees the memory of kernels that were tried and not chosen
      for (auto& t : threads_) t.memory = {};
    return way;
  }

  int threads() const { return team_.size(); }
  edl::kernels kernels() const { return choices_.policy(); }
  bool libraries() const { return kernels() != edl::kernels::own; }
  /// Whether factors of products are rounded to bfloat16.
  bool rounds() const { return precision_ == precision::bfloat16 && !exact_; }
  /// Whether factors of forward products are quantised to 8-bit integers.
  bool quantises() const { return precision_ == precision::int8 && !exact_; }
  edl::precision precision() const { return precision_; }

  /// The number of parts into which `n` units of work are divided, so that each has at least `least`.
  int parts(std::size_t n, std::size_t least) const {
    return int(std::clamp<std::size_t>(n / std::max<std::size_t>(least, 1), 1, std::size_t(threads())));
  }

  /// Calls work(begin, end, thread) for equal parts of [0, n), in parallel.
  template <class Work>
  void share(std::size_t n, int parts, Work&& work) {
    auto const p = std::size_t(parts);
    team_.run(parts, [&](int t) { work(n * std::size_t(t) / p, n * std::size_t(t + 1) / p, t); });
  }

  thread_team& team() { return team_; }
  std::unique_ptr<detail::kernel_store>& store() { return store_; }

  /// Announces that layers' kernels stay unchanged until the next call. So the device may cache their
  /// quantised forms, in as many bytes as they have elements. Without any call it caches nothing.
  void kernels_written() { ++written_; }
  /// The number of calls of `kernels_written`.
  std::uint64_t written() const { return written_; }
  /// Whether the device also caches kernels in the layouts of libraries.
  bool keeps() const { return keeps_ && written_ > 0; }
  /// Reserves memory for this many cached scalars. False: the limit is reached.
  bool keeps_more(std::size_t scalars) {
    constexpr std::size_t most = (64 << 20) / sizeof(T);
    if (scalars > most - kept_) return false;
    kept_ += scalars;
    return true;
  }
  std::unique_ptr<detail::kernel_store>& quantised() { return quantised_; }
  std::unique_ptr<detail::kernel_store>& transformed() { return transformed_; }

  // ---- The processor uses host memory, so most of what other backends do here is trivial. ----

  T* allocate(std::size_t n) override {
    if (n > std::size_t(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(detail::take_memory(n * sizeof(T)));
  }
  void release(T* memory, std::size_t n) noexcept override { detail::give_memory(memory, n * sizeof(T)); }
  bool in_host_memory() const override { return true; }
  bool narrows() const override { return std::same_as<T, float> && rounds(); }
  void upload(std::span<std::byte const> host, void* to) override {
    if (!host.empty()) std::memcpy(to, host.data(), host.size());
  }
  void download(void const* from, std::span<std::byte> host) override {
    if (!host.empty()) std::memcpy(host.data(), from, host.size());
  }
  void bind(in) override {}
  void synchronize() override {}
  bool exact_products(bool on) override { return std::exchange(exact_, on); }

  // ---- Operations: each is defined in the file of its kind, as activation.ipp ----

  void conv2d_forward(conv_geometry const& g, int batch, activation f, in x, in kernel, in bias,
                      out y) override;
  void conv2d_backward(conv_geometry const& g, int batch, in x, in kernel, in dy, out dx, out dkernel,
                       out dbias) override;
  void dense_forward(std::size_t rows, std::size_t inputs, std::size_t outputs, activation f, in x, in kernel,
                     in bias, out y, bool narrow = false) override;
  void dense_backward(std::size_t rows, std::size_t inputs, std::size_t outputs, in x, in kernel, in dy,
                      out dx, out dkernel, out dbias, bool narrow = false) override;
  void multiply_matrices(product_geometry const& g, in a, in b, out y) override;
  void transpose(std::size_t matrices, std::size_t rows, std::size_t columns, in x, out y) override;
  std::string describe_conv2d(conv_geometry const& g, int batch) override;
  std::string describe_dense(std::size_t rows, std::size_t inputs, std::size_t outputs) override;
  void max_pool_forward(pool_geometry const& g, int batch, in x, out y) override;
  void max_pool_backward(pool_geometry const& g, int batch, in x, in y, in dy, out dx) override;
  void average_pool_forward(pool_geometry const& g, int batch, in x, out y) override;
  void average_pool_backward(pool_geometry const& g, int batch, in dy, out dx) override;
  void batch_norm_train(norm_chain const& c, int batch, T momentum, T epsilon, in x, in gamma, in beta,
                        in more, out running_mean, out running_variance, out y, out kept) override;
  void batch_norm_evaluate(norm_chain const& c, int batch, T epsilon, in x, in gamma, in beta, in more,
                           in running_mean, in running_variance, out y, out kept) override;
  void batch_norm_recompute(norm_chain const& c, int batch, in x, in gamma, in beta, in kept, out y) override;
  void batch_norm_backward(norm_chain const& c, int batch, bool through, in x, in gamma, in beta, in dy,
                           in kept, out dx, out dgamma, out dbeta) override;
  void elementwise_forward(elementwise f, T parameter, in x, out y, bfloat16_io narrow = {}) override;
  void elementwise_backward(elementwise f, T parameter, in y, in dy, out dx,
                            bfloat16_io narrow = {}) override;
  void dropout_forward(T rate, random_stream const& random, in x, out y, std::span<std::byte> mask,
                       bfloat16_io narrow = {}) override;
  void dropout_backward(T rate, std::span<std::byte const> mask, in dy, out dx,
                        bfloat16_io narrow = {}) override;
  void copy(in x, out y, bfloat16_io narrow = {}) override;
  void add(activation f, in a, in b, out y, bfloat16_io narrow = {}) override;
  void multiply_elements(in a, in b, out y) override;
  void add_masked(in a, in b, in x, out y, bfloat16_io narrow = {}) override;
  void store_bfloat16(in x, std::span<std::byte> to) override;
  void load_bfloat16(std::span<std::byte const> from, out y) override;
  void copy_columns(std::size_t rows, std::size_t columns, in x, std::size_t x_first, std::size_t x_stride,
                    out y, std::size_t y_first, std::size_t y_stride) override;
  void embedding_forward(embedding_geometry const& g, int batch, in ids, in table, out y) override;
  void embedding_backward(embedding_geometry const& g, int batch, in ids, in dy, out dx, out dtable) override;
  void factorization_forward(std::size_t samples, std::size_t rows, std::size_t width, in x, out y) override;
  void factorization_backward(std::size_t samples, std::size_t rows, std::size_t width, in x, in dy,
                              out dx) override;
  void softmax_forward(std::size_t rows, std::size_t classes, in x, out y) override;
  void softmax_backward(std::size_t rows, std::size_t classes, in y, in dy, out dx) override;
  void log_softmax_forward(std::size_t rows, std::size_t classes, in x, out y) override;
  void log_softmax_backward(std::size_t rows, std::size_t classes, in y, in dy, out dx) override;
  void attention_forward(attention_geometry const& g, int batch, out qkv, out y, out kept) override;
  void attention_backward(attention_geometry const& g, int batch, in y, in dy, in kept, out qkv) override;
  void cached_attention_forward(attention_geometry const& g, std::span<sequence_place const> rows, out qkv,
                                out cache, out y) override;
  void cross_attention_forward(cross_attention_geometry const& g, int batch, attention_mask const& m,
                               in queries, in keys_values, out y, out kept) override;
  void cross_attention_backward(cross_attention_geometry const& g, int batch, attention_mask const& m,
                                in queries, in keys_values, in y, in dy, in kept, out dqueries,
                                out dkeys_values) override;
  void recurrent_forward(recurrent_geometry const& g, int batch, in kernel, in bias, out gates, out states,
                         out y) override;
  void recurrent_backward(recurrent_geometry const& g, int batch, in kernel, in states, in y, in dy,
                          out gates, out drecurrent) override;
  void masked_attention_forward(attention_geometry const& g, int batch, attention_mask const& m, out qkv,
                                out y, out kept) override;
  void masked_attention_backward(attention_geometry const& g, int batch, attention_mask const& m, in y, in dy,
                                 in kept, out qkv) override;
  void masked_recurrent_forward(recurrent_geometry const& g, int batch, kept_places const& places, in kernel,
                                in bias, out gates, out states, out y) override;
  void masked_recurrent_backward(recurrent_geometry const& g, int batch, kept_places const& places, in kernel,
                                 in states, in y, in dy, out gates, out drecurrent) override;
  void masked_average_pool_forward(kept_places const& places, std::size_t channels, in x, out y) override;
  void masked_average_pool_backward(kept_places const& places, std::size_t channels, in dy, out dx) override;
  void masked_max_pool_forward(kept_places const& places, std::size_t channels, in x, out y) override;
  void masked_max_pool_backward(kept_places const& places, std::size_t channels, in x, in y, in dy,
                                out dx) override;

 private:
  using buffer = aligned_buffer<T>;
  struct per_thread {
    buffer workspace;
    std::array<buffer, rooms> memory;
  };

  thread_team team_;
  edl::precision precision_;
  bool keeps_;
  bool exact_ = false;
  detail::kernel_choices choices_;
  std::vector<per_thread> threads_;
  std::unique_ptr<detail::kernel_store> store_, quantised_;
  std::uint64_t written_ = 0;
  std::unique_ptr<detail::kernel_store> transformed_;
  std::size_t kept_ = 0;  // cached scalars
};

/// The processor at hand, in single precision.
using cpu = basic_cpu<float>;

static_assert(device<basic_cpu<float>> && device<basic_cpu<double>>);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/activation.ipp"
#include "edl/compute/device/cpu/attention.ipp"
#include "edl/compute/device/cpu/batch_norm.ipp"
#include "edl/compute/device/cpu/convolution/conv2d.ipp"
#include "edl/compute/device/cpu/dense.ipp"
#include "edl/compute/device/cpu/dropout.ipp"
#include "edl/compute/device/cpu/elementwise.ipp"
#include "edl/compute/device/cpu/embedding.ipp"
#include "edl/compute/device/cpu/masked_pool.ipp"
#include "edl/compute/device/cpu/matrices.ipp"
#include "edl/compute/device/cpu/pool.ipp"
#include "edl/compute/device/cpu/recurrent.ipp"
#include "edl/compute/device/cpu/softmax.ipp"
#endif
