#!/usr/bin/env python3
"""Changes the names of kfuncs that Linux 6.18 does not have in a kernel's BTF.

    benches/without_later_kfuncs.py VMLINUX.BTF CHANGED.BTF

Objects that choose by what the kernel's types have then use the kfuncs of 6.18. Needs bpftool.
"""
import pathlib
import re
import subprocess
import sys

# Structures by which sched_ext's headers choose a later kfunc.
ARGUMENTS = ["scx_bpf_dsq_insert_vtime_args", "scx_bpf_select_cpu_and_args"]

source, changed = sys.argv[1:]
table = pathlib.Path(__file__).parent.parent / "src/spec/kfuncs/table.rs"
known = set(re.findall(r"^\s+(\w+) = [\w:]+,", table.read_text(), re.M))
dump = subprocess.run(
    ["bpftool", "btf", "dump", "file", source], capture_output=True, text=True, check=True
).stdout
names = dict(re.findall(r"^\[(\d+)\] FUNC '([^']+)'", dump, re.M))
marked = re.findall(r"DECL_TAG 'bpf_kfunc' type_id=(\d+)", dump)
later = [names[kfunc] for kfunc in marked if names.get(kfunc, "") not in known | {""}]
blob = pathlib.Path(source).read_bytes()
for name in later + ARGUMENTS:
    old = name.encode()
    blob = blob.replace(b"\0" + old + b"\0", b"\0X" + old[1:] + b"\0")
pathlib.Path(changed).write_bytes(blob)
print(f"{len(later)} of {len(marked)} kfuncs changed")
