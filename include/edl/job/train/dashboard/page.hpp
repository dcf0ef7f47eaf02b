// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace edl::train {

/// A page: one HTML document that requests only documents of its own server. Its policy
/// (Content-Security-Policy) names its style and its script by their digests.
struct dashboard_page {
  std::string text, policy;
};

/// The page that shows a job.
dashboard_page make_dashboard_page();

/// A page with the same style. `body`: the element. `script` may use `dashboard_curves`, `dashboard_runs` and
/// `dashboard_live`.
dashboard_page make_page(std::string_view body, std::string_view script);

/// Its parts.
std::string_view dashboard_body();
std::string_view dashboard_style();
std::string_view dashboard_script();
std::string_view dashboard_curves();  ///< elements, and the drawing of curves
std::string_view dashboard_runs();    ///< tables of runs, their curves in one picture, events
std::string_view dashboard_live();    ///< data from the server

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/dashboard/page.ipp"
#include "edl/job/train/dashboard/page_body.ipp"
#include "edl/job/train/dashboard/page_curves.ipp"
#include "edl/job/train/dashboard/page_live.ipp"
#include "edl/job/train/dashboard/page_runs.ipp"
#include "edl/job/train/dashboard/page_script.ipp"
#include "edl/job/train/dashboard/page_style.ipp"
#endif
