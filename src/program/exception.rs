//! The exception callback of a program, as its BTF names it.

use crate::btf::Btf;
use crate::spec::kfuncs::EXCEPTION_CALLBACK;
use crate::util::TypeId;

/// The functions that a main function names as its exception callback (`__exception_cb(name)`); a
/// program with more than one is not loaded.
pub(crate) fn exception_callbacks(btf: &Btf, main: TypeId) -> impl Iterator<Item = &str> {
    btf.decl_tags(main)
        .filter(|ty| ty.component().is_none())
        .filter_map(|ty| ty.name().strip_prefix(EXCEPTION_CALLBACK))
}
