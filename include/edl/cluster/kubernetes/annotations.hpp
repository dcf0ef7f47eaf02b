// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace edl::kubernetes::annotation {

// On the pod of a master, written by users and by the controller, and removed by the master when it answers.
inline constexpr char num_workers[] = "elasticdl/num-workers";  ///< a number of workers that is requested
inline constexpr char num_servers[] = "elasticdl/num-ps-pods";  ///< a number of servers that is requested
inline constexpr char leave[] = "elasticdl/leave";              ///< workers that are to leave first, as "3,5"
inline constexpr char why[] = "elasticdl/why";                  ///< of that size, in words
inline constexpr char short_nodes[] =
    "elasticdl/short-nodes";  ///< by the controller: "n1=DiskPressure;n2=…", of nodes where workers run
inline constexpr char least[] =
    "elasticdl/least-workers";  ///< by the controller: a number of workers without which the job does not run
inline constexpr char pool[] =
    "elasticdl/pool";  ///< by the controller: node labels that new workers require, as a JSON object; also on
                       ///< workers' pods. Other workers move there. Absent: their template alone decides
inline constexpr char suspend[] = "elasticdl/suspend";  ///< "true": the job is to end so that it can go on

// On the pod of a master, written by the master.
inline constexpr char scaled[] = "elasticdl/scaled";      ///< its answer to the last size request, in words
inline constexpr char size[] = "elasticdl/size";          ///< `job_size`, as "workers=2,servers=1"
inline constexpr char progress[] = "elasticdl/progress";  ///< one line for a person
inline constexpr char report[] = "elasticdl/report";      ///< the same in JSON, for the controller
inline constexpr char waits[] = "elasticdl/waits";  ///< what the job waits for, in words; absent: nothing
inline constexpr char leaving_nodes[] =
    "elasticdl/leaving-nodes";  ///< nodes that are about to go, by notices, as "n1,n2"; absent: none
inline constexpr char missing[] =
    "elasticdl/missing";  ///< the pod without which the job does not run, and why it is refused; absent: none

// On all objects that one command line has submitted.
inline constexpr char submission[] =
    "elasticdl/submission";  ///< the same for a repetition of the same request

/// Names with this prefix are edl's own.
inline constexpr char prefix[] = "elasticdl/";

}  // namespace edl::kubernetes::annotation
