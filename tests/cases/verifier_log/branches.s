# type: socket_filter
    r6 = *(u32 *)(r1 +0)
    if r6 > 0x40 goto big
    if w6 s< 0x5 goto small
    r0 = r6
    exit
big:
    if r6 == 0x12345678 goto small
    r0 = 1
    if r6 & 0x8000 goto out
    r0 = 2
out:
    exit
small:
    r0 = 0
    exit
