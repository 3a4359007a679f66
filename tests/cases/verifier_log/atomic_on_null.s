# type: cgroup_skb
    r1 = *(u64 *)(r1 +168)
    if r1 == 0 goto none
    call bpf_tcp_sock
    r1 = 1
    lock *(u64 *)(r0 +0) += r1
none:
    r0 = 0
    exit
