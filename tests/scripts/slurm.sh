#!/usr/bin/env bash
# Runs a command on a Slurm cluster of this host alone, which lasts as long as the command: slurm.sh COMMAND ARGUMENTS
# Needs root and the Debian package slurm-wlm; exits with 77 where one is missing.
set -euo pipefail

for program in munged slurmctld slurmd srun; do
    command -v "$program" >/dev/null || { echo "skipped: $program is not installed (slurm-wlm)"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "skipped: Slurm's daemons need root"; exit 77; }

folder=$(mktemp -d /tmp/gradwire-slurm.XXXXXX)
daemons=()
cleanup() {
    # srun returns before the end of its job's own daemon, which needs the others to end.
    for _ in $(seq 50); do [ -z "$(squeue --noheader 2>/dev/null)" ] && break; sleep 0.1; done
    for daemon in "${daemons[@]}"; do kill "$daemon" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT

mkdir "$folder/state" "$folder/spool"
chmod 700 "$folder"
head -c 1024 /dev/urandom >"$folder/munge.key"
chmod 600 "$folder/munge.key"
host=$(hostname -s)
base=$((20000 + $$ % 20000))
cat >"$folder/slurm.conf" <<CONFIGURATION
ClusterName=gradwire
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=$base
SlurmdPort=$((base + 1))
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
ReturnToService=2
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE OverSubscribe=YES State=UP
CONFIGURATION
export SLURM_CONF=$folder/slurm.conf

munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
    --pid-file="$folder/munged.pid" --seed-file="$folder/munge.seed" --log-file="$folder/munged.log" >/dev/null 2>&1 &
daemons+=($!)
for _ in $(seq 100); do [ -S "$folder/munge.socket" ] && break; sleep 0.1; done
slurmctld -D -i >/dev/null 2>&1 &
daemons+=($!)
slurmd -D >/dev/null 2>&1 &
daemons+=($!)
for _ in $(seq 100); do
    [ "$(sinfo --noheader --format=%T 2>/dev/null)" = idle ] && break
    sleep 0.2
done
if [ "$(sinfo --noheader --format=%T 2>/dev/null)" != idle ]; then
    echo "Slurm does not start:" >&2
    tail -5 "$folder"/*.log >&2
    exit 1
fi
"$@"
