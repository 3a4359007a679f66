#!/usr/bin/env bash
# Builds every committed BPF object from the C file beside it (in the folders below):
# NAME.bpf.c becomes NAME.bpf.o.
#
#   bash examples/bpf/rebuild.sh           rewrite the objects
#   bash examples/bpf/rebuild.sh --check   build them elsewhere and compare the
#                                          instructions with the committed ones
#   CLANG=clang-16 bash examples/bpf/rebuild.sh --into DIR
#                                          build them with another compiler, which may
#                                          fail, into a folder (for `fuzz --rebuilt`)
#
# Special comment lines in a source select other flags, or additional
# objects:
#   // flags: -mcpu=v3           NAME.bpf.o with these flags
#   // build v1: -mcpu=v1        also NAME.v1.bpf.o, with that flag
#   // link whole: other         also NAME.whole.bpf.o: NAME.bpf.o and other.bpf.o,
#                                linked by `bpftool gen object`
#
# The bundled kernel types, a C file too, become plain BTF, whose types --check compares.
#
# Needs clang-19, llvm-objcopy-19, llvm-objdump-19 (for --check), bpftool and libbpf's headers
# (Debian: clang-19 llvm-19 bpftool libbpf-dev).
set -euo pipefail
cd "$(dirname "$0")/../.."

check=false keeps_going=false
case ${1-} in
'') out=. ;;
--check) check=true out=$(mktemp -d) && trap 'rm -rf "$out"' EXIT ;;
--into) keeps_going=true out=${2:?the folder} ;;
*) echo "usage: $0 [--check | --into DIR]" >&2; exit 2 ;;
esac

types=src/object/bundled/vmlinux
folders=(examples/bpf tests/objects tests/verifier_mistakes tests/attach_targets
	tests/kernel_types benches/bpf)

# -target bpf does not search the multiarch folder, where Debian has <asm/types.h>.
# The debug information must not contain paths of this machine.
multiarch=$(gcc -print-multiarch)
flags=(-target bpf -g -O2 -Wall -Werror -ffile-compilation-dir=.
	-idirafter "/usr/include/$multiarch")

compile() { # source object flags…
	mkdir -p "$(dirname "$2")"
	"${CLANG:-clang-19}" "${flags[@]}" "${@:3}" -c "$1" -o "$2" || $keeps_going
}

# Prints the instructions of an object, section by section, with their relocations,
# without its file name, its debug information and the order of its strings.
listing() { llvm-objdump-19 --disassemble --reloc "$1" | tail -n +3; }

mapfile -t sources < <(find "${folders[@]}" -name '*.bpf.c' | sort)
built=()
for source in "${sources[@]}"; do
	base=${source%.bpf.c}
	# shellcheck disable=SC2046 # the flags are words
	compile "$source" "$out/$base.bpf.o" $(sed -n 's|^// flags: ||p' "$source")
	built+=("$base.bpf.o")
	while IFS=: read -r variant extra; do
		# shellcheck disable=SC2086 # the flags are words
		compile "$source" "$out/$base.$variant.bpf.o" $extra
		built+=("$base.$variant.bpf.o")
	done < <(sed -n 's|^// build ||p' "$source")
done
for source in "${sources[@]}"; do
	base=${source%.bpf.c}
	while IFS=: read -r variant others; do
		parts=("$out/$base.bpf.o")
		for other in $others; do
			parts+=("$out/$(dirname "$source")/$other.bpf.o")
		done
		bpftool gen object "$out/$base.$variant.bpf.o" "${parts[@]}" || $keeps_going
		built+=("$base.$variant.bpf.o")
	done < <(sed -n 's|^// link ||p' "$source")
done

if $keeps_going; then
	find "$out" -name '*.bpf.o' | wc -l | xargs echo "objects built:"
	exit
fi

mkdir -p "$out/$(dirname $types)"
compile $types.c "$out/$types.o"
llvm-objcopy-19 --dump-section .BTF="$out/$types.btf" "$out/$types.o" /dev/null
rm "$out/$types.o"

if ! $check; then
	echo "${#built[@]} objects built from ${#sources[@]} sources"
	exit
fi

failed=0
for object in "${built[@]}"; do
	if [ ! -f "$object" ]; then
		echo "$object: not committed" >&2
		failed=1
	elif ! diff -u --label "$object (committed)" --label "$object (rebuilt)" \
		<(listing "$object") <(listing "$out/$object") >&2; then
		failed=1
	fi
done
if ! diff -u --label "$types.btf (committed)" --label "$types.btf (rebuilt)" \
	<(bpftool btf dump file $types.btf) <(bpftool btf dump file "$out/$types.btf") >&2; then
	failed=1
fi
if stray=$(find "${folders[@]}" -name '*.bpf.o' | sort |
	grep -vxFf <(printf '%s\n' "${built[@]}")); then
	printf 'no source builds this: %s\n' $stray >&2
	failed=1
fi
if [ $failed = 0 ]; then
	echo "${#built[@]} objects have the instructions of their sources"
else
	echo "rebuild with: bash $0" >&2
fi
exit $failed
