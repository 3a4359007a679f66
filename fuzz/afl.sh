#!/usr/bin/env bash
# Builds the fuzz targets for AFL++, all or those named, and prints the folder of the programs.
#
#   bash fuzz/afl.sh [TARGET...] [OPTION OF cargo build...]
#
# Needs AFL++ (Debian: afl++) and stable Rust. libfuzzer-sys links AFL++'s driver for libFuzzer
# targets instead of libFuzzer; rustc adds the coverage that AFL++ reads. AFL_LIB names the folder
# of libAFLDriver.a if AFL++ is not in /usr/lib/afl.
set -euo pipefail
cd "$(dirname "$0")"

lib=${AFL_LIB:-/usr/lib/afl}
runtime=$lib/afl-compiler-rt-64.o
[ -f "$runtime" ] || runtime=$lib/afl-compiler-rt.o
for file in "$lib/libAFLDriver.a" "$runtime"; do
	[ -f "$file" ] || { echo "file not found: \`$file\`: install afl++, or set AFL_LIB" >&2; exit 1; }
done

targets=()
while [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; do
	targets+=(--bin "$1")
	shift
done

# As `cargo fuzz build`: debug assertions, overflows with them, and one codegen unit, since coverage
# keeps functions from being inlined into other units.
flags="-Cdebug-assertions -Ccodegen-units=1"
flags+=" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3"
flags+=" -Cllvm-args=-sanitizer-coverage-trace-pc-guard -Clink-arg=$runtime"

# With --target, build scripts and derive macros are built without these flags.
host=$(rustc -vV | sed -n 's/^host: //p')
CUSTOM_LIBFUZZER_PATH=$lib/libAFLDriver.a RUSTFLAGS="$flags ${RUSTFLAGS-}" \
	cargo build --release --target "$host" --target-dir target/afl "${targets[@]}" "$@"
echo "fuzz/target/afl/$host/release"
