// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/cluster/autoscaler/admission.hpp"
#include "edl/cluster/autoscaler/allocation.hpp"
#include "edl/cluster/autoscaler/autoscaler.hpp"
#include "edl/cluster/autoscaler/exchange.hpp"
#include "edl/cluster/autoscaler/outcome.hpp"
#include "edl/cluster/autoscaler/packing.hpp"
#include "edl/cluster/autoscaler/shrinking.hpp"
#include "edl/core/inline.hpp"

namespace edl::autoscaler {

EDL_INLINE plan make_plan(cluster_view const& view, plan_options const& options) {
  using namespace detail;
  allocation a(view, options);
  keep_promises(a);
  reserve(a);
  replace_missing(a);
  // Each step may open a way for an earlier one. Pods get room, and jobs are let in, once; between that,
  // exchanges end.
  for (bool again = true; again;) {
    again = trim(a);
    if (exchange(a)) {
      if (put_together(a)) exchange(a);
      again = true;
    }
    again = admit(a) || again;
    again = reserve(a) || again;
    again = fill_up(a) || again;
  }
  if (options.move) move_together(a);
  return outcome_of(a);
}

}  // namespace edl::autoscaler
