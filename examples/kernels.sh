#!/usr/bin/env bash
# Compares the examples with other kernels, in virtual machines: the table in docs/live.md.
#
#   bash examples/kernels.sh 6.1 6.12 6.18
#
# Takes kernels of the cache (`bpflab kernels list`). Needs
# qemu-system-x86_64 and Rust; root is not needed. BPFLAB_LIVE_EVENTS sets the number of events
# (default 300), BPFLAB_LOGS a folder for what the tests printed in each machine.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo "usage: $0 VERSION..." >&2; exit 2; }
export BPFLAB_LIVE_EVENTS=${BPFLAB_LIVE_EVENTS:-300}
logs=${BPFLAB_LOGS:-$(mktemp -d)}
mkdir -p "$logs"

# The executables that cargo builds, as it names them.
built() {
	cargo "$@" --message-format=json 2>"$logs/cargo" |
		sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1
}
bpflab=$(built build --bin bpflab)
tests=$(built test --no-run --test live_examples)
[ -x "$bpflab" ] && [ -x "$tests" ] || { cat "$logs/cargo" >&2; exit 1; }

failed=0
for version in "$@"; do
	log=$logs/${version//\//-}
	"$bpflab" kernel exec --vm "$version" --guest-file "$PWD/examples/bpf" \
		--guest-file /bin/true \
		-- "$tests" --nocapture --test-threads=1 --skip honesty --skip races --skip forms:: --skip packets:: 2>"$log" >"$log.tests" || {
		echo "Linux $version: see $log and $log.tests" >&2
		failed=1
	}
done

# A line for each example, a column for each kernel; reasons are below the table.
cd "$logs"
awk -F ' [|] ' -v versions="$*" '
	BEGIN {
		columns = split(versions, version, " ")
		for (at = 1; at <= columns; at++) {
			head = head " | " version[at]
			rule = rule "|---"
			file = version[at]
			gsub("/", "-", file)
			while ((getline < file) > 0) {
				if ($0 !~ /row [|] /) continue
				result = $3
				if (match(result, /^(lacks|failed): /)) {
					if (!(result in note)) {
						note[result] = ++notes
						text[notes] = result
					}
					sub(/: .*/, "", result)
					result = result " (" note[$3] ")"
				}
				if (!($2 in row)) {
					row[$2] = ++rows
					name[rows] = $2
				}
				cell[$2, at] = result
			}
		}
		print "| example" head " |"
		print "|---" rule "|"
		for (number = 1; number <= rows; number++) {
			line = "| " name[number]
			for (at = 1; at <= columns; at++) {
				result = cell[name[number], at]
				line = line " | " (result == "" ? "no result" : result)
			}
			print line " |"
		}
		if (notes) print ""
		for (number = 1; number <= notes; number++) print number ". " text[number]
	}'
exit $failed
