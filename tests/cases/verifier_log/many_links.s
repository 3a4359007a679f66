# type: socket_filter
    r6 = *(u32 *)(r1 +0)
    r2 = r6
    r3 = r6
    r3 += 1
    r4 = r6
    r4 += -1
    w5 = w6
    w5 += 3
    *(u64 *)(r10 -8) = r6
    *(u64 *)(r10 -16) = r6
    *(u64 *)(r10 -24) = r6
    *(u64 *)(r10 -32) = r3
    if r6 > 100 goto out
    r1 = *(u64 *)(r10 -8)
    r1 = *(u64 *)(r10 -24)
    r1 = *(u64 *)(r10 -32)
    if r3 < 10 goto out
    r1 = r2
    r1 = r4
    r1 = r5
    if w5 == 20 goto out
    r1 = r3
    r7 = *(u32 *)(r10 -8)
    if r7 != r6 goto out
    r1 = r2
    r1 = r3
    r1 = r4
    r1 = r5
out:
    r0 = 0
    exit
