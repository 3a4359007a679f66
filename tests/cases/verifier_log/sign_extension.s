# type: socket_filter
    call bpf_get_prandom_u32
    r6 = r0
    if r6 > 127 goto +2
    r7 = (s8)r6
    if r7 s> 5 goto +0
    call bpf_get_prandom_u32
    r6 = r0
    if r6 > 128 goto +2
    r7 = (s8)r6
    if r7 s> 5 goto +0
    call bpf_get_prandom_u32
    r6 = r0
    if r6 > 32767 goto +2
    r7 = (s16)r6
    if r7 s> 5 goto +0
    call bpf_get_prandom_u32
    r6 = r0
    if r6 > 32768 goto +2
    r7 = (s16)r6
    if r7 s> 5 goto +0
    call bpf_get_prandom_u32
    r6 = r0
    if r6 > 2147483647 goto +2
    r7 = (s32)r6
    if r7 s> 5 goto +0
    call bpf_get_prandom_u32
    r6 = r0
    if r6 > 127 goto +2
    w7 = (s8)w6
    if r7 s> 5 goto +0
    call bpf_get_prandom_u32
    r6 = r0
    if r6 > 128 goto +2
    w7 = (s8)w6
    if r7 s> 5 goto +0
    call bpf_get_prandom_u32
    r6 = r0
    if r6 > 32767 goto +2
    w7 = (s16)w6
    if r7 s> 5 goto +0
    call bpf_get_prandom_u32
    r6 = r0
    if r6 > 32768 goto +2
    w7 = (s16)w6
    if r7 s> 5 goto +0
    r0 = 0
    exit
