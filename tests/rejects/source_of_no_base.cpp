// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this source is not derived from
#include "edl/edl.hpp"

namespace nn = edl::nn;

class lines {
 public:
  explicit lines(std::string const& path) : shards_{{path, 1}} {}
  std::vector<edl::data::shard> const& shards() const { return shards_; }
  std::unique_ptr<edl::data::reader> open() const { return edl::data::make_reader<one>(); }

 private:
  struct one : edl::data::reader {
    void read(std::size_t, std::uint64_t, edl::example&) override {}
  };

  std::vector<edl::data::shard> shards_;
};

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static std::unique_ptr<edl::data::source> open(std::string const& path, edl::data::source_options const&) {
    return edl::data::make_source<lines>(path);
  }
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode m) {
    into.features = record.floats("x");
    if (m != edl::mode::prediction) into.label = record.integer("y");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
