// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "edl/base/bucket/readable.hpp"
#include "edl/compute/data/reader.hpp"

/// Paths of a command line that may be those of a bucket, `s3://BUCKET/KEY`.
namespace edl::tool {

/// Where objects are copied to. A terminal shows the progress of a copy.
bucket::cache_options cache();

std::unique_ptr<data::source> open_records(std::string const& path, data::source_options const& how = {});

/// Calls `how` with the path of a new file: the given one, or a temporary one, which then becomes the object.
/// Throws error before that if the object may not be written.
void write_file(std::string const& path, std::function<void(std::string const& path)> const& how);

}  // namespace edl::tool
