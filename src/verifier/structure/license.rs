//! Licenses (`license_is_gpl_compatible`, `include/linux/license.h`).

/// Whether a program with this license may use GPL-only functions.
pub(crate) fn is_gpl_compatible(license: &str) -> bool {
    matches!(
        license,
        "GPL"
            | "GPL v2"
            | "GPL and additional rights"
            | "Dual BSD/GPL"
            | "Dual MIT/GPL"
            | "Dual MPL/GPL"
    )
}
