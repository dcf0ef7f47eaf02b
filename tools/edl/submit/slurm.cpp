// SPDX-License-Identifier: Apache-2.0
#include "submit/slurm.hpp"

#include <fmt/format.h>

#include <string_view>

#include "edl/app/arguments.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"

namespace edl::tool {
namespace {

/// What sbatch reads, and the variables of `rest`.
constexpr std::string_view head = R"(#!/bin/bash
# A job of edl in Slurm, written by `edl slurm`. Submit it: sbatch {name}.sh
#SBATCH --job-name={name}
#SBATCH --ntasks={tasks}
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
{options}program=({program})
port={port}
servers={servers}
workers={workers}
worker_options=({worker_options})
)";

constexpr std::string_view rest = R"(
set -u

# Runs one process of the job as a step of this allocation: NAME VARIABLE=VALUE…
step() {
  local name=$1
  shift
  srun --quiet --exact --nodes=1 --ntasks=1 --kill-on-bad-exit=0 --job-name="$name" env "$@" \
    bash -c 'export MY_POD_IP=${MY_POD_IP:-$(hostname -I | cut -d" " -f1)}; exec "$@"' - "${program[@]}"
}

# Queues this job again if Slurm is taking it away: a job that ends by itself would not be.
requeue_if_preempted() {
  if scontrol show job "$SLURM_JOB_ID" | grep -q 'PreemptTime=[0-9]'; then scontrol requeue "$SLURM_JOB_ID"; fi
}

# A worker: one task of the array. Each start has an id of its own, as the job knows the last one to be lost.
if [ "${EDL_SLURM_ROLE-}" = worker ]; then
  for try in 0 1 2 3; do
    id=$(((${SLURM_RESTART_COUNT:-0} * 4 + try) * 10000 + SLURM_ARRAY_TASK_ID))
    step worker EDL_ROLE=worker WORKER_ID=$id
    code=$?
    requeue_if_preempted
    case $code in 0 | 75) exit 0 ;; esac # the job is over, the worker has left, or the master is gone
  done
  exit $code
fi

# The master and the servers. They run again when they are killed; a signal that asks them to end has its way.
keep() {
  local code
  while true; do
    step "$@"
    code=$?
    if [ $code -le 128 ] || [ $code -eq 130 ] || [ $code -eq 143 ]; then return $code; fi
  done
}
array=$SLURM_JOB_NAME-workers-$SLURM_JOB_ID
remove_workers() { scancel --quiet --name="$array"; }

host=$(hostname -I | cut -d' ' -f1)
export EDL_JOB_NAME=$SLURM_JOB_NAME MASTER_ADDR=$host:$port
EDL_JOB_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export EDL_JOB_TOKEN
remove_workers # of this job before it was requeued: they know another token
for ((id = 0; id < servers; ++id)); do keep ps-$id EDL_ROLE=ps PS_ID=$id & done
keep master EDL_ROLE=master MY_POD_IP="$host" EDL_PORT=$port &
master=$!

# Two minutes before its time is up the job writes a checkpoint, and is queued again.
time_is_up=
write_checkpoint() {
  time_is_up=yes
  squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format='%i %j' | while read -r id name; do
    if [ "$name" = master ]; then scancel --signal=INT "$id"; fi
  done
}
trap write_checkpoint USR1
trap 'remove_workers; exit 143' TERM # scancel

env -u SLURM_RESTART_COUNT sbatch --quiet --job-name="$array" --array=0-$((workers - 1)) --ntasks=1 --requeue \
  --signal=TERM@60 --export=ALL,EDL_SLURM_ROLE=worker "${worker_options[@]}" "$0" || exit
code=0
while kill -0 $master 2>/dev/null; do # a signal ends `wait`
  wait $master
  code=$?
done
remove_workers
requeue_if_preempted
if [ -n "$time_is_up" ] && [ $code -ne 0 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit $code
)";

/// Options of sbatch, as a user writes them in a shell: separated by blanks.
words options_of(command_line const& l, std::string const& flag) {
  words all = split(l.text(flag), ' ');
  std::erase(all, "");
  for (std::string const& one : all) {
    if (!one.starts_with("--"))
      throw usage_error(fmt::format("--{}={}: '{}' is not a long option of sbatch, as --time=1:00:00 is",
                                    flag, l.text(flag), one));
    for (char const* own : {"--array", "--ntasks", "--job-name", "--signal", "--export"})
      if (one == own || one.starts_with(std::string(own) + "="))
        throw usage_error(fmt::format("--{}: the script sets {} itself", flag, own));
  }
  return all;
}

bool names_a_job(std::string const& name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
             name.npos;
}

}  // namespace

std::vector<flag> slurm_flags() {
  return {
      {.name = "sbatch",
       .fallback = "",
       .help = "options of sbatch for all processes, separated by blanks: '--account=lab --time=8:00:00'"},
      {.name = "worker_sbatch",
       .fallback = "",
       .help = "more of them for the workers: '--partition=spot --gres=gpu:1'"}};
}

std::string slurm_script(words const& line) {
  command_line const l("slurm", slurm_flags(), line, 2, 100'000, "--, and the program with its command line");
  words const& program = l.arguments();
  words const own(program.begin() + 1, program.end());
  auto const read = app::parse(program[0].substr(program[0].rfind('/') + 1), own);
  if (!read.run || read.run->job.command != edl::command::train)
    throw usage_error(
        "edl slurm is for `train`: `evaluate` and `predict` are one process, which sbatch --wrap runs");
  edl::job const& j = read.run->job;
  if (j.strategy == edl::strategy::local)
    throw usage_error(
        "this job is one process, which `sbatch --wrap` runs: --num_workers=N makes it several");
  if (!names_a_job(j.name))
    throw usage_error(
        fmt::format("--job_name={}: letters, digits, - and _ alone, as Slurm uses it, too", j.name));
  if (j.checkpoints.checkpoint_dir.empty())
    note("without --checkpoint_dir a job that Slurm takes away, or that runs out of time, begins anew");
  std::string options;
  for (std::string const& one : options_of(l, "sbatch")) options += "#SBATCH " + one + "\n";
  words worker = options_of(l, "worker_sbatch");
  return fmt::format(head, fmt::arg("name", j.name), fmt::arg("tasks", 1 + j.processes.num_ps_pods),
                     fmt::arg("options", options), fmt::arg("program", shell_line(program)),
                     fmt::arg("port", j.processes.port ? std::to_string(j.processes.port)
                                                       : "$((20000 + SLURM_JOB_ID % 10000))"),
                     fmt::arg("servers", j.processes.num_ps_pods),
                     fmt::arg("workers", j.processes.num_workers),
                     fmt::arg("worker_options", shell_line(worker))) +
         std::string(rest);
}

int slurm(words const& line) {
  fmt::print("{}", slurm_script(line));
  return done;
}

}  // namespace edl::tool
