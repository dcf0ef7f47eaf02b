// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "edl/cluster/controller/pod_marks.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller {

EDL_INLINE void pod_marks::look_at(autoscaler::pod_shape const& s) {
  for (auto const* lines : {&s.apart, &s.together})
    for (autoscaler::separation const& one : *lines) selectors_.try_emplace(one.mark, one.mark);
}

EDL_INLINE autoscaler::shared<autoscaler::pod_shape> pod_marks::marked(
    autoscaler::shared<autoscaler::pod_shape> const& s, std::string const& space,
    autoscaler::label_set const& labels) {
  std::vector<std::string> marks;
  for (auto const& [text, selector] : selectors_)
    if (selector.selects(space, labels)) marks.push_back(text);
  if (marks.empty()) return s;
  auto const [at, fresh] = made_.try_emplace({&*s, marks}, s);
  if (fresh) {
    autoscaler::pod_shape more = *s;
    more.marks = std::move(marks);
    at->second = autoscaler::shared<autoscaler::pod_shape>(
        std::make_shared<autoscaler::pod_shape const>(std::move(more)));
  }
  return at->second;
}

}  // namespace edl::controller
