#!/bin/bash
# Prints the table of docs/collections.md: bpflab's verdicts beside the running kernel's.
#
#     benches/collections.sh FOLDER [BPFLAB]
#
# FOLDER has one folder of BPF objects for each collection. A file OBJECT.args holds the options
# for what the object's own loader sets: sizes of maps, program types. Needs root and jq. The
# JSON stays in FOLDER/COLLECTION.json, for a look at each difference.
set -euo pipefail

folder=${1:?usage: collections.sh FOLDER [BPFLAB]}
bpflab=${2:-bpflab}

# A verdict of both counts only where neither side lacks one.
row='
def count(f): map(select(f)) | length;
def ms(f): map(f // 0) | add // 0 | . / 1000 | round;
map(select(.verdict)) | . as $all
| map(select(.kernel.verdict == "accept" or .kernel.verdict == "reject")) as $judged
| ($judged | map(select(.match))) as $both
| [ $name, ($all | length), ($judged | length), ($judged | count(.kernel.verdict == "accept")),
    ($both | count(.match.verdict)),
    ($both | count(.verdict == "reject" and .match.message and .match.errno)),
    ($both | count(.verdict == "accept" and .match.processed)),
    ($judged | count(.verdict == "unjudged" or .verdict == "error")),
    (($all | length) - ($judged | length)),
    (($all - $judged) | count(.verdict == "accept")),
    ($both | ms(.time_us)), ($both | ms(.kernel.time_us)) ]
| "| " + (map(tostring) | join(" | ")) + " |"'

echo '| collection | programs | judged by the kernel | accepted by it | verdict equal | error line equal | processed equal | unjudged | no kernel verdict | accepted here | ms | kernel ms |'
echo '|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|'
all=()
for collection in "$folder"/*/; do
  name=$(basename "$collection")
  json=$folder/$name.json
  : >"$json"
  for object in "$collection"*.o; do
    options=()
    # A last line without its end is read, too.
    [[ ! -f $object.args ]] || read -ra options <"$object.args" || true
    # Exit code 1: not all verdicts match; 2: an object without programs.
    "$bpflab" verify "$object" "${options[@]}" --vs-kernel --json --report never >>"$json" \
      2>/dev/null || [[ $? -le 2 ]]
  done
  jq -rs --arg name "$name" "$row" "$json"
  all+=("$json")
done
jq -rs --arg name all "$row" "${all[@]}"
