# type: socket_filter
    r6 = r10
    r0 = *(u8 *)skb[4]
    exit
