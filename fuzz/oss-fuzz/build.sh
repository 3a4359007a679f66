#!/bin/bash -eu
# Builds the targets of fuzz/ for OSS-Fuzz, each with its seeds and dictionary. $SRC and $OUT are
# OSS-Fuzz's; the sanitizer and the engine are set by its cargo-fuzz.
cd "$SRC/bpflab"
cargo fuzz build -O
cargo run --release -- fuzz --corpus "$SRC/corpus" $(printf -- "--from %s " tests/objects/*.bpf.o)
for source in fuzz/fuzz_targets/*.rs; do
	target=$(basename "$source" .rs)
	# There is no kernel to compare with.
	[ "$target" = verify_vs_kernel ] && continue
	cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
	[ -d "$SRC/corpus/$target" ] && (cd "$SRC/corpus/$target" && zip -q "$OUT/${target}_seed_corpus.zip" ./*)
	case $target in asm_roundtrip | events) cp fuzz/bpf.dict "$OUT/$target.dict" ;; esac
done
