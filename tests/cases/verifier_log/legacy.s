# type: socket_filter
    r6 = r1
    r1 = 1
    r3 = 3
    r5 = 5
    r0 = *(u8 *)skb[4]
    r7 = r0
    r7 &= 3
    r2 = 2
    r0 = *(u16 *)skb[r7 + 2]
    if r0 > 9 goto +1
    r7 = r0
    r0 = 0
    exit
