# type: socket_filter
    r6 = *(u32 *)(r1 +0)
    r7 = 5
again:
    if r6 > 5 goto next
    r7 = 6
next:
    r7 = 5
    if r6 == 7 goto again
    if r6 != 8 goto again
    r0 = 0
    exit
