#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A job of Slurm: a node of the fleet for each task, on all hosts of the allocation.
#
#   sbatch --nodes=4 --ntasks-per-node=2 train.sh python3 /home/me/train.py
#
# All hosts need sgpd, sgpctl, the module sgp and the script, as on a shared file system.
#SBATCH --job-name=sgp
#SBATCH --time=01:00:00
set -eu
if [ $# -eq 0 ]; then
    echo "usage: sbatch train.sh PROGRAM [ARGUMENT ...]" >&2
    exit 2
fi
hosts=$(mktemp)
trap 'rm -f "$hosts"' EXIT
trap 'exit 143' TERM # scancel; once sgpctl has ended
# "2(x3),1" is two tasks on each of three hosts, and one on the next
scontrol show hostnames "$SLURM_JOB_NODELIST" | awk -v tasks="${SLURM_TASKS_PER_NODE:-}" '
    BEGIN {
        count = split(tasks, groups, ",")
        for (i = 1; i <= count; i++) {
            split(groups[i], parts, /[(x)]+/)
            for (times = parts[2] ? parts[2] : 1; times > 0; times--)
                slots[++hosts] = parts[1]
        }
    }
    { print $1 " slots=" (slots[NR] ? slots[NR] : 1) }' > "$hosts"
"${SGPCTL:-sgpctl}" up ${SGPCTL:+--sgpctl "$SGPCTL"} "$hosts" -- "$@"
