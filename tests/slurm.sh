#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: slurm.sh EDL PROGRAM: a job in a real Slurm of three nodes on this machine. Slurm takes a worker away, the
# master is killed, the job's time is up and it is queued again; every record counts once.
set -eu
edl=$1 program=$2
skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "slurmd runs as root"
for each in slurmctld slurmd munged sbatch; do command -v $each >/dev/null || skip "no $each (apt-get install slurm-wlm munge)"; done

work=$(mktemp -d /tmp/edl-slurm-XXXXXX)
export SLURM_CONF=$work/slurm.conf
started=()
clean_up() {
  scancel --quiet --me 2>/dev/null || :
  for process in "${started[@]}"; do kill "$process" 2>/dev/null || :; done
  wait || :
  pkill -KILL -f "$work" || :
  rm -rf "$work"
}
trap clean_up EXIT
fail() {
  echo "slurm.sh: $1" >&2
  squeue >&2 || :
  tail -n 20 "$work"/*.out "$work"/log/* >&2
  exit 1
}
until_true() { # SECONDS WHAT COMMAND…
  local seconds=$1 what=$2
  shift 2
  for ((i = 0; i < 10 * seconds; ++i)); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  fail "$what"
}

# Ports that nobody has at the moment: Slurm cannot choose its own.
mapfile -t ports < <(python3 -c 'import socket
all = [socket.socket() for _ in range(4)]
for s in all: s.bind(("127.0.0.1", 0))
for s in all: print(s.getsockname()[1])')
host=$(hostname)
mkdir "$work/state" "$work/log"
cat >"$SLURM_CONF" <<END
ClusterName=lab
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool-%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/log/slurmctld
SlurmdLogFile=$work/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
END
for n in 1 2 3; do
  echo "NodeName=n$n NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[$n]} CPUs=4" >>"$SLURM_CONF"
done
cat >>"$SLURM_CONF" <<END
PartitionName=main Nodes=n[1-3] Default=YES PriorityTier=10 PreemptMode=OFF
PartitionName=spot Nodes=n[1-3] PriorityTier=1 PreemptMode=REQUEUE GraceTime=30
END
head -c 128 /dev/urandom >"$work/munge.key"
chmod 600 "$work/munge.key"
munged --foreground --force --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munge.pid" \
  --log-file="$work/log/munge" --seed-file="$work/munge.seed" &
started+=($!)
until_true 20 "munged does not start" test -S "$work/munge.socket"
slurmctld -D -c >"$work/log/slurmctld.out" 2>&1 &
started+=($!)
for n in 1 2 3; do
  slurmd -D -c -N n$n >"$work/log/n$n.out" 2>&1 &
  started+=($!)
done
up() { [ "$(sinfo --noheader --partition=main --states=idle --format=%D)" = 3 ]; }
until_true 60 "no three nodes" up

# The records of tests: three clouds of points.
awk 'BEGIN { srand(7); for (i = 0; i < 2048; ++i) { l = i % 3; printf "{\"x\": ["
  for (k = 0; k < 8; ++k) printf "%s%.4f", k ? ", " : "", (k % 3 == l) + rand(); printf "], \"label\": %d}\n", l } }' \
  >"$work/records.jsonl"
cd "$work"
export TINY_GATE=$work/gate TINY_DELAY_US=5000
"$edl" slurm --sbatch=--partition=main --worker_sbatch=--partition=spot -- "$program" train --job_name=tiny \
  --training_data="$work/records.jsonl" --minibatch_size=32 --num_minibatches_per_task=4 --num_epochs=40 \
  --num_workers=2 --num_ps_pods=1 --checkpoint_dir="$work/checkpoints" --checkpoint_steps=20 >tiny.sh
job=$(sbatch --parsable --output=tiny.out tiny.sh)
says() { cat "$work"/*.out | grep -q "$1"; }
until_true 60 "no two workers" says "worker 1 joined"
until_true 60 "no training" says "Checkpoint of version"

echo "== Slurm takes worker 0 away, and gives it back"
array=$(squeue --noheader --name="tiny-workers-$job" --format=%F | head -n 1)
place=$(squeue --noheader --job="${array}_0" --format=%N)
free=$((4 - $(squeue --noheader --nodelist="$place" --format=%C | awk "{ all += \$1 } END { print all }")))
srun --quiet --partition=main --nodelist="$place" --ntasks=$((free + 1)) sleep 2
restarts() { squeue --noheader --array --name="tiny-workers-$job" --Format=RestartCnt:8 | grep -qw 1; }
until_true 60 "no worker is queued again" restarts
until_true 10 "it did not hand over" says "returned the lease"
scontrol update JobId="${array}_0,${array}_1" StartTime=now 2>/dev/null || :
until_true 90 "the worker does not come back" says "worker 4000[01] joined"

echo "== the master is killed"
for process in $(pgrep -f "^$program train .*$work"); do
  if tr '\0' '\n' <"/proc/$process/environ" | grep -qx EDL_ROLE=master; then kill -KILL "$process"; fi
done
until_true 60 "no master takes its place" says "this one takes its place\|this master goes on"

echo "== the job's time is up"
scancel --signal=USR1 --batch "$job"
queued_again() { [ "$(squeue --noheader --job="$job" --format=%T)" = PENDING ]; }
until_true 60 "it is not queued again" queued_again
sleep 3 # Slurm refuses a start in the second in which it revoked the last one
scontrol update JobId="$job" StartTime=now
goes_on() { [ "$(grep -c "going on from" tiny.out)" = 2 ]; }
until_true 90 "it does not go on" goes_on
touch "$TINY_GATE"
over() { [ -z "$(squeue --noheader)" ]; }
until_true 120 "it does not end" over
says "trained .* records" || fail "it has not ended well"
"$program" audit "$work/checkpoints"
