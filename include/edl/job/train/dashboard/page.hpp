// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace edl::train {

/// The page that shows a job: one document of HTML that asks for nothing but `/api/live`. Its policy
/// (Content-Security-Policy) names its style and its script by their digests.
struct dashboard_page {
  std::string text, policy;
};

dashboard_page make_dashboard_page();

/// Its parts.
std::string_view dashboard_body();
std::string_view dashboard_style();
std::string_view dashboard_script();
std::string_view dashboard_curves();  ///< the script's second half: how curves are drawn

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/dashboard/page.ipp"
#include "edl/job/train/dashboard/page_body.ipp"
#include "edl/job/train/dashboard/page_curves.ipp"
#include "edl/job/train/dashboard/page_script.ipp"
#include "edl/job/train/dashboard/page_style.ipp"
#endif
