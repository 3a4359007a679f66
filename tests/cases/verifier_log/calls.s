# type: socket_filter
    r6 = *(u32 *)(r1 +0)
    *(u64 *)(r10 -8) = r6
    r1 = r10
    r1 += -8
    r2 = 5
    call add
    r7 = r0
    r7 += r6
    r0 = 0
    exit
add:
    r3 = *(u64 *)(r1 +0)
    r3 += r2
    *(u64 *)(r1 +0) = r2
    *(u64 *)(r10 -16) = r1
    r0 = r3
    exit
