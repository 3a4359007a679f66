//! Loads an object's BTF, also into kernels that don't know all kinds of types.

use super::error::{Command, KernelError};
use super::log::text;
use super::sys::{BtfFd, TokenFd};
use crate::btf::{Btf, Builder, Encoding, KnownKinds};
use crate::util::TypeId;

/// Loads BTF. If the kernel refuses it, loads it without the kinds that this kernel does not
/// know; if that is refused, too, the error has the log.
pub(super) fn load_btf(btf: &Btf, token: Option<&TokenFd>) -> Result<BtfFd, KernelError> {
    const LOG: usize = 1 << 16;
    let bytes = btf.to_bytes();
    BtfFd::load(&bytes, &mut [], token).or_else(|errno| {
        let reduced = btf.reduced(known_kinds(token));
        let is_smaller = reduced != bytes;
        if is_smaller && let Ok(loaded) = BtfFd::load(&reduced, &mut [], token) {
            return Ok(loaded);
        }
        let mut log = vec![0; LOG];
        // The retry may fail with another errno: the log is longer than its buffer.
        let _ = BtfFd::load(if is_smaller { &reduced } else { &bytes }, &mut log, token);
        Err(KernelError {
            log: text(&log),
            ..KernelError::new(Command::BtfLoad, "BTF", errno)
        })
    })
}

/// The kinds that the running kernel knows: those of which it loads an example.
fn known_kinds(token: Option<&TokenFd>) -> KnownKinds {
    let loads = |add: &dyn Fn(&mut Builder, TypeId)| {
        let mut builder = Builder::new();
        let int = builder.int("int", 4, Encoding::Signed);
        add(&mut builder, int);
        let built = builder.build();
        built.is_ok_and(|btf| BtfFd::load(&btf.to_bytes(), &mut [], token).is_ok())
    };
    KnownKinds {
        float: loads(&|b, _| {
            b.float("float", 4);
        }),
        decl_tag: loads(&|b, int| {
            let named = b.typedef("number", int);
            b.decl_tag("tag", named, None, false);
        }),
        type_tag: loads(&|b, int| {
            let tag = b.type_tag("tag", int, false);
            b.ptr(tag);
        }),
        enum64: loads(&|b, _| {
            b.enumeration64("wide", 8, false, &[]);
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::machine::Uname;
    use crate::shared::{Need, skip};

    #[test]
    fn this_kernel_knows_the_kinds_of_its_release() {
        let mut plain = Builder::new();
        plain.int("int", 4, Encoding::Signed);
        let plain = plain.build().unwrap();
        if let Err(error) = load_btf(&plain, None) {
            return skip(Need::Kernel, error);
        }
        let here = Uname::here();
        let known = known_kinds(None);
        for (kind, is_known, since) in [
            ("float", known.float, (5, 13)),
            ("decl_tag", known.decl_tag, (5, 16)),
            ("type_tag", known.type_tag, (5, 17)),
            ("enum64", known.enum64, (6, 0)),
        ] {
            assert_eq!(is_known, !here.is_before(since), "{kind}");
        }
    }
}
