#!/bin/sh
# Drives one job on spot: asks `planner advise` every few minutes and does what it says.
#
#   spot_loop.sh PLAN.json PROVIDER [SECONDS between questions, default 360]
#
# PROVIDER is a program of yours with four verbs (skypilot_provider.py is one):
#   PROVIDER status          print the state of the job as JSON (`planner schema state`)
#   PROVIDER run spot ZONE   run there, wherever it ran before; it may fail, `status` then says so
#   PROVIDER run on_demand   run on on-demand, wherever it ran before
#   PROVIDER stop            stop what runs
# Ends with 0 when the work is done. If no answer can be had three times in a row, on-demand is started: the loop would
# rather pay than miss the deadline.
set -u

[ $# -ge 2 ] || { sed -n '4p' "$0" >&2; exit 2; }
plan=$1
provider=$2
every=${3:-360}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

field() { # field NAME: a value of the answer, empty for null
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]] or "")' "$folder/advice.json" "$1"
}

ask() { # an answer in advice.json, or failure; exit code 3 is an answer too (the deadline is lost)
  rm -f "$folder/advice.json"
  "$provider" status >"$folder/state.json" || return 1
  planner advise "$plan" --state "$folder/state.json" --every "${every}s" -o json --out "$folder/advice.json" >&2
  [ $? -eq 0 ] || [ -s "$folder/advice.json" ]
}

failures=0
while :; do
  if ask; then
    failures=0
    action=$(field action)
    zone=$(field zone)
    echo "$action${zone:+ $zone}: $(field why)" >&2
    case $action in
      stay) ;;
      wait) "$provider" stop ;;
      nothing) "$provider" stop && exit 0 ;;
      "switch to on-demand") "$provider" run on_demand ;;
      "start spot" | migrate) "$provider" run spot "$zone" || echo "no spot in $zone" >&2 ;;
    esac
  else
    failures=$((failures + 1))
    echo "no answer ($failures)" >&2
    [ "$failures" -lt 3 ] || "$provider" run on_demand
  fi
  ${SPOT_LOOP_SLEEP:-sleep} "$every"
done
