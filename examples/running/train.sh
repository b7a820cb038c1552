#!/bin/bash
# A stand-in for a training loop, to try plan, export, track and calibrate without a GPU: it writes the progress that
# a loop would log, a row of CSV every 20 steps, and computes nothing. Its clock runs ahead: 20 steps of about
# STEP_SECONDS (4.2) are a row within ROW_SECONDS (0.05), so that hours of training pass in seconds.
# Stopped and started again it goes on from the last row.
set -euo pipefail

log=${1:?usage: train.sh LOG.csv}
begin=$(date -u -d "${STARTED:-now}" +%s)
[ -e "$log" ] || echo "step,time,tokens,nodes,step_seconds,checkpoint_seconds" >"$log"
IFS=, read -r step clock _ < <(tail -n 1 "$log")
[ "$step" != step ] || { step=0 clock=$begin; }

exec awk -v step="$step" -v clock="$clock" -v seconds="${STEP_SECONDS:-4.2}" -v pause="${ROW_SECONDS:-0.05}" \
  -v save_every="${PLANNER_CHECKPOINT_STEPS:-500}" \
  -v tokens="$((${PLANNER_GLOBAL_BATCH:-64} * ${PLANNER_SEQUENCE_LENGTH:-4096}))" -v nodes="${PLANNER_NODES:-1}" '
  BEGIN {
    last = 3815
    srand(step + 1)
    while (step < last) {
      steps = step + 20 < last ? 20 : last - step
      each = seconds * (0.98 + 0.04 * rand())
      save = int((step + steps) / save_every) > int(step / save_every) ? 112 : 0
      step += steps
      clock += steps * each + save
      printf "%d,%.1f,%.0f,%d,%.3f,%d\n", step, clock, step * tokens, nodes, each, save
      fflush()
      system("sleep " pause)
    }
  }' >>"$log"
