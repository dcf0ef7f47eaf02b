// SPDX-License-Identifier: Apache-2.0
// Trains on RecordIO files that lie on a web server or in an object store.
#include <edl/edl.hpp>

#include "http_recordio.hpp"

namespace nn = edl::nn;

struct remote {
  static constexpr auto network =
      nn::sequential(nn::features{.count = 784}, nn::dense{.units = 64}, nn::relu{}, nn::dense{.units = 10});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::adam optimizer{};
  using metrics = edl::metrics<edl::accuracy>;

  static std::unique_ptr<edl::data::source> open(std::string const& path,
                                                 edl::data::source_options const& options) {
    if (!path.starts_with("http://") && !path.starts_with("https://")) return nullptr;
    return edl::data::make_source<http_recordio>(path, options);
  }
  static void feed(edl::example const& record, edl::sample<remote>& into, edl::mode m) {
    into.features = record.floats("image") / 255.0f;
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

int main(int argc, char** argv) { return edl::run<remote>(argc, argv); }
