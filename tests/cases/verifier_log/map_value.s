# type: socket_filter
# map: hash counts 4 48 16
    r6 = *(u32 *)(r1 +0)
    *(u32 *)(r10 -4) = w6
    r2 = r10
    r2 += -4
    r1 = map[idx:0]
    call bpf_map_lookup_elem
    if r0 == 0 goto none
    r6 &= 0x1f
    r1 = r0
    r1 += r6
    r2 = *(u64 *)(r1 +8)
    r3 = *(u8 *)(r0 +47)
    r2 += r3
    lock *(u64 *)(r0 +0) += r2
none:
    r0 = 0
    exit
