// SPDX-License-Identifier: Apache-2.0
#include "common/paths.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "edl/base/bucket/place.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/core/error.hpp"

namespace edl::tool {

bucket::cache_options cache() {
  return {.log = logger(::isatty(2) == 1 ? severity::info : severity::warning)};
}

std::unique_ptr<data::source> open_records(std::string const& path, data::source_options const& how) {
  return data::open_source(path, how, bucket::opener_of(cache()));
}

void write_file(std::string const& path, std::function<void(std::string const& path)> const& how) {
  if (!bucket::names_objects(path)) return how(path);
  auto const key = bucket::parts_of(path).second;
  if (key.empty() || key.ends_with('/'))
    throw usage_error(fmt::format("{}: names no object; expected s3://BUCKET/KEY", path));
  auto const slash = path.rfind('/');
  bucket::place const place(path.substr(0, slash), cache());
  std::string const name = path.substr(slash + 1);
  place.check(name);
  place.write(name, how);
}

}  // namespace edl::tool
