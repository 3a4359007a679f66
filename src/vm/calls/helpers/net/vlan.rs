//! VLAN tags (`skb_vlan_push`, `skb_vlan_pop`, `net/core/skbuff.c`): the outermost tag is
//! stored in fields (`vlan_present`, `vlan_tci`, `vlan_proto`), the others in the packet.

use super::skb::Skb;
use crate::util::Errno;
use crate::vm::events::ETH_HLEN;
use crate::vm::machine::{Call, Returned};

/// `ETH_P_8021Q`.
const DOT1Q: u16 = 0x8100;
/// `ETH_P_8021AD`.
const DOT1AD: u16 = 0x88a8;
/// Size of a tag in the packet.
const TAG: usize = 4;
/// Size of both hardware addresses.
const ADDRESSES: usize = 12;

/// `eth_type_vlan`.
const fn is_tag(protocol: u16) -> bool {
    matches!(protocol, DOT1Q | DOT1AD)
}

fn put_tag(skb: &Skb<'_>, protocol: u16, tci: u16) {
    skb.set_field("vlan_present", 1);
    skb.set_field("vlan_tci", tci.into());
    skb.set_field(
        "vlan_proto",
        u16::from_le_bytes(protocol.to_be_bytes()).into(),
    );
}

/// `bpf_skb_vlan_push(context, protocol in network order, tag)`: moves a tag in the fields
/// into the packet.
pub fn push(call: &mut Call<'_>) -> Returned {
    let [low, high, ..] = call.arg(2).to_le_bytes();
    let [tci_low, tci_high, ..] = call.arg(3).to_le_bytes();
    let protocol = u16::from_be_bytes([low, high]);
    let protocol = if is_tag(protocol) { protocol } else { DOT1Q };
    let mut skb = Skb::of(call)?;
    if skb.field("vlan_present") != 0 {
        if skb.data != skb.headers.mac || skb.len() < ETH_HLEN {
            return Ok(Errno::EINVAL.to_ret());
        }
        let [kind @ .., _, _] = skb.field("vlan_proto").to_le_bytes();
        let [tag_low, tag_high, ..] = skb.field("vlan_tci").to_le_bytes();
        if !skb.push(TAG) {
            return Ok(Errno::ENOMEM.to_ret());
        }
        skb.copy_within(TAG, 0, ADDRESSES);
        skb.write(ADDRESSES, &[kind[0], kind[1], tag_high, tag_low]);
        skb.headers.mac = skb.data;
        skb.headers.network = skb.headers.network.saturating_sub(TAG);
        skb.set_protocol(u16::from_be_bytes(kind));
        skb.add_to_checksum(ADDRESSES, TAG);
    }
    put_tag(&skb, protocol, u16::from_le_bytes([tci_low, tci_high]));
    skb.commit();
    Ok(0)
}

/// `bpf_skb_vlan_pop(context)`: removes the outermost tag; the next tag moves from the packet
/// to the fields.
pub fn pop(call: &mut Call<'_>) -> Returned {
    let mut skb = Skb::of(call)?;
    let popped = pop_outermost(&mut skb);
    skb.commit();
    Ok(popped.map_or_else(Errno::to_ret, |()| 0))
}

fn pop_outermost(skb: &mut Skb<'_>) -> Result<(), Errno> {
    if skb.field("vlan_present") != 0 {
        for name in ["vlan_present", "vlan_tci", "vlan_proto"] {
            skb.set_field(name, 0);
        }
    } else if is_tag(skb.protocol()) {
        take_out(skb)?;
    } else {
        return Ok(());
    }
    let next = skb.protocol();
    if is_tag(next) {
        let tci = take_out(skb)?;
        put_tag(skb, next, tci);
    }
    Ok(())
}

/// Removes a tag from the packet (`__skb_vlan_pop`).
fn take_out(skb: &mut Skb<'_>) -> Result<u16, Errno> {
    if skb.data != skb.headers.mac {
        return Err(Errno::EINVAL);
    }
    let header = skb.read(0, ETH_HLEN + TAG).ok_or(Errno::ENOMEM)?;
    let word = |at: usize| match header.get(at..at + 2) {
        Some(&[high, low]) => u16::from_be_bytes([high, low]),
        _ => 0,
    };
    skb.subtract_from_checksum(ADDRESSES, TAG);
    skb.copy_within(0, TAG, ADDRESSES);
    skb.pull(TAG);
    skb.headers.mac += TAG;
    // After the tag comes a protocol or, below 0x600, a length (`vlan_set_encap_proto`).
    let inner = word(ETH_HLEN + 2);
    skb.set_protocol(match inner {
        0x600.. => inner,
        _ if skb.read(ETH_HLEN, 2).as_deref() == Some(&[0xff, 0xff]) => 1,
        _ => 4,
    });
    skb.headers.network = skb.headers.network.max(skb.data + ETH_HLEN);
    Ok(word(ETH_HLEN))
}
