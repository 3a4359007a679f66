#!/bin/bash
# Compares bpflab's verdicts with those of PREVAIL, another verifier (docs/peers.md).
#
#     BPFLAB_PREVAIL=prevail benches/prevail.sh BPFLAB FOLDER...
#
# Prints a table with a row for each folder of BPF objects; with LIST=1 then each program on which the
# verdicts differ, and with LIST=all each one that PREVAIL does not analyse, too. Needs jq.
set -euo pipefail

bpflab=${1:?usage: BPFLAB_PREVAIL=prevail benches/prevail.sh BPFLAB FOLDER...}
shift
if [[ -z ${BPFLAB_PREVAIL:-} ]]; then
  echo 'not compared: PREVAIL is not installed (BPFLAB_PREVAIL names its command)' >&2
  exit 1
fi

# PREVAIL's verdict on a program, and its reason. It checks that a program ends, as Linux does.
judge() {
  local text
  text=$(timeout 60 "$BPFLAB_PREVAIL" --termination -f "$1" --function "$2" 2>&1) || true
  case $text in
    *PASS:*) echo 'accept' ;;
    *FAIL:*) echo "reject $(grep -v '^$\|^Unresolved' <<<"$text" | head -1)" ;;
    *) echo "none $(head -1 <<<"$text")" ;;
  esac
}

echo '| folder | programs | both accept | both reject | only bpflab accepts | only PREVAIL accepts | accepted by bpflab, not analysed by PREVAIL | rejected by bpflab, not analysed by PREVAIL |'
echo '|---|--:|--:|--:|--:|--:|--:|--:|'
differences=
for folder in "$@"; do
  declare -A count=()
  programs=0
  for object in "$folder"/*.o; do
    # Exit code 1: not all programs are accepted; 2: an object without programs.
    json=$("$bpflab" verify "$object" --json --report never 2>/dev/null) || [[ $? -le 2 ]]
    while read -r program ours; do
      read -r theirs why < <(judge "$object" "$program")
      programs=$((programs + 1))
      count[$ours-$theirs]=$((${count[$ours-$theirs]:-0} + 1))
      if [[ $theirs != "$ours" && ($theirs != none || ${LIST:-} == all) ]]; then
        differences+="$ours $theirs: $object $program: $why"$'\n'
      fi
    done < <(jq -r 'select(.verdict == "accept" or .verdict == "reject")
                    | "\(.program) \(.verdict)"' <<<"$json")
  done
  printf '| `%s` | %d |' "$folder" "$programs"
  for key in accept-accept reject-reject accept-reject reject-accept accept-none reject-none; do
    printf ' %d |' "${count[$key]:-0}"
  done
  echo
  unset count
done
[[ -z ${LIST:-} ]] || printf '\n%s' "$differences"
