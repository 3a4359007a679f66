# type: socket_filter
    r6 = *(u32 *)(r1 +0)
    r6 &= 3
    r7 = 0
    r8 = r6
    *(u64 *)(r10 -8) = r6
outer:
    r9 = 0
inner:
    r9 += 1
    r8 += r9
    if r9 < 3 goto inner
    r1 = *(u64 *)(r10 -8)
    r1 += 1
    *(u64 *)(r10 -8) = r1
    r7 += 1
    if r7 != 4 goto outer
    r0 = r8
    exit
