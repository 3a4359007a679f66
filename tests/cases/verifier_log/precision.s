# type: socket_filter
    r6 = *(u32 *)(r1 +0)
    r6 &= 0x3
    r7 = r6
    if r6 == 0 goto zero
    r7 += 1
zero:
    r8 = r7
    *(u64 *)(r10 -8) = r8
    r8 = *(u64 *)(r10 -8)
    r2 = r10
    r2 += -16
    r2 += r8
    r0 = *(u8 *)(r2 +0)
    exit
