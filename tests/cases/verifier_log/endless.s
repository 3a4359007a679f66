# type: socket_filter
    r6 = *(u32 *)(r1 +0)
    r7 = 5
again:
    if r6 > 90000 goto next
    r7 = 6
next:
    r7 = 5
    if r6 == 90001 goto again
    if r6 == 90002 goto again
    r0 = 0
    exit
