# type: socket_filter
# map: hash counts 4 16 16
    *(u32 *)(r10 -4) = 0
    r2 = r10
    r2 += -4
    r1 = map[idx:0]
    call bpf_map_lookup_elem
    r6 = r0
    r2 = r10
    r2 += -4
    r1 = map[idx:0]
    call bpf_map_lookup_elem
    r7 = r0
    r8 = r0
    if r6 == r7 goto both
    if r7 == 0 goto out
    if r6 == r7 goto same
    if r7 != r6 goto out
    r1 = *(u64 *)(r6 +0)
    r1 = *(u64 *)(r8 +0)
same:
    r1 = *(u64 *)(r6 +8)
    goto out
both:
    if r6 != r10 goto out
    r1 = *(u64 *)(r6 +0)
out:
    r0 = 0
    exit
