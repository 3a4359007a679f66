# type: socket_filter
    r6 = *(u32 *)(r1 +0)
    r7 = r6
    r7 += 4
    w8 = w6
    *(u64 *)(r10 -8) = r6
    if r6 > 0x10 goto out
    if r8 != 3 goto out
    r2 = *(u64 *)(r10 -8)
out:
    r0 = 0
    exit
