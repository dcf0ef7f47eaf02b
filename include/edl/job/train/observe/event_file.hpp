// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/core/span.hpp"

namespace edl::train {

/// Records of TensorBoard's event files: a TFRecord each, of a message Event with the fields 1 wall_time, 2
/// step, 3 file_version, 5 summary and 7 session_log (tensorflow/core/util/event.proto,
/// framework/summary.proto).

/// The first record of a file: its format.
std::string event_file_version(double seconds_since_1970);

/// Scalars of a step, by their tags.
std::string event_of_scalars(double seconds_since_1970, std::uint64_t step,
                             std::vector<std::pair<std::string, double>> const& scalars);

/// Values of a step by their tags, each as counts in TensorFlow's default buckets (HistogramProto;
/// tensorflow/core/lib/histogram): limits from 1e-12 to 1e20, each 1.1 times the last, both ways from 0. A
/// value that is not finite is left out.
std::string event_of_histograms(double seconds_since_1970, std::uint64_t step,
                                std::vector<std::pair<std::string, view<float>>> const& values);

/// A picture as an encoded file.
struct event_picture {
  int height = 0, width = 0, channels = 1;
  std::string png;
};
std::string event_of_pictures(double seconds_since_1970, std::uint64_t step,
                              std::vector<std::pair<std::string, event_picture>> const& pictures);

/// Training begins or resumes with this step: it invalidates this and later steps in earlier files.
std::string event_of_start(double seconds_since_1970, std::uint64_t step);

/// `events.out.tfevents.SECONDS.HOST`, followed by `.NUMBER` unless it is 0.
std::string event_file_name(double seconds_since_1970, std::string_view host, std::uint64_t number);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/observe/event_file.ipp"
#endif
