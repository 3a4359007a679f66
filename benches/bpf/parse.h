// Computes the flow of an Ethernet frame: addresses, ports and protocol of IPv4 or IPv6
// and TCP or UDP, after at most two VLAN tags, in one number; 0 for anything else.
// Every header is checked against the end before it is read.
#pragma once

#define ETHERNET 14
#define VLAN 4
#define IPV4 20
#define IPV6 40
#define PORTS 4

// Protocol numbers in network order.
#define ETH_IPV4 0x0008
#define ETH_IPV6 0xdd86
#define ETH_VLAN 0x0081
#define ETH_VLAN_OUTER 0xa888
#define IP_TCP 6
#define IP_UDP 17

// Frames are 8-byte aligned, their IP headers are not.
INLINED u32 load_halves(const u8 *at)
{
	return LOAD16(at) | (u32)LOAD16(at + 2) << 16;
}

INLINED u64 parse_frame(const u8 *at, const u8 *end)
{
	u64 flow;
	u16 ether_type;
	u8 protocol;

	if (at + ETHERNET > end)
		return 0;
	ether_type = LOAD16(at + 12);
	at += ETHERNET;
	UNROLLED
	for (int tag = 0; tag < 2; tag++) {
		if (ether_type == ETH_VLAN || ether_type == ETH_VLAN_OUTER) {
			if (at + VLAN > end)
				return 0;
			ether_type = LOAD16(at + 2);
			at += VLAN;
		}
	}
	if (ether_type == ETH_IPV4) {
		u32 header;

		if (at + IPV4 > end)
			return 0;
		header = (at[0] & 15) * 4;
		// Only the first fragment has ports.
		if (header < IPV4 || at[0] >> 4 != 4 || LOAD16(at + 6) & 0xff1f)
			return 0;
		protocol = at[9];
		flow = load_halves(at + 12) * 31ull + load_halves(at + 16);
		at += header;
	} else if (ether_type == ETH_IPV6) {
		if (at + IPV6 > end)
			return 0;
		protocol = at[6];
		flow = 0;
	UNROLLED
		for (int i = 8; i < IPV6; i += 4)
			flow = flow * 31 + load_halves(at + i);
		at += IPV6;
	} else {
		return 0;
	}
	if (protocol != IP_TCP && protocol != IP_UDP)
		return 0;
	if (at + PORTS > end)
		return 0;
	return (flow * 31 + load_halves(at)) * 31 + protocol;
}
