# type: socket_filter
    r6 = 0
    r0 = 0
again:
    r0 += r6
    r6 += 1
    if r6 < 0x3 goto again
    exit
