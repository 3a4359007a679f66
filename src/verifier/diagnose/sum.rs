//! Shows in numbers why an access leaves its object: `16 × 8 + 8 > 128`.

use super::origin::Path;
use super::template::fit;
use crate::isa::Reg;
use crate::verifier::Reject;

/// The lines with the size of the object, the offset and the size of the access.
const LINES: [&str; 3] = [
    "invalid access to map value, value_size={object} off={off} size={size}",
    "invalid access to map key, key_size={object} off={off} size={size}",
    "invalid access to memory, mem_size={object} off={off} size={size}",
];

/// The sum for an access through `base`, with the meaning of each number; in words if the
/// reject has no numbers.
pub(super) fn sum(reject: &Reject, path: Option<&Path<'_>>, base: Option<Reg>) -> String {
    numbers(reject, path, base)
        .unwrap_or_else(|| "offset + access size > size of the object".to_owned())
}

fn numbers(reject: &Reject, path: Option<&Path<'_>>, base: Option<Reg>) -> Option<String> {
    let mut lines = reject.text().lines();
    let line = lines.find_map(|line| LINES.into_iter().find_map(|template| fit(template, line)))?;
    let number = |name| line.get(name)?.parse::<i64>().ok();
    let (object, off, size) = (number("object")?, number("off")?, number("size")?);
    if off < 0 {
        return Some(format!("{off} < 0 (offset < start of the object)"));
    }
    let Some((index, scale, fixed)) = parts(reject, path, base, off) else {
        return Some(format!(
            "{off} + {size} > {object} (offset + access size > size of the object)"
        ));
    };
    let fixed = match fixed {
        0 => String::new(),
        1.. => format!(" + {fixed}"),
        _ => format!(" - {}", fixed.unsigned_abs()),
    };
    Some(format!(
        "{index} × {scale}{fixed} + {size} > {object} \
         (index × element size + access size > size of the object)"
    ))
}

/// The parts of an offset computed from an index: the index, the element size, and the
/// constant that is added.
fn parts(
    reject: &Reject,
    path: Option<&Path<'_>>,
    base: Option<Reg>,
    off: i64,
) -> Option<(i64, i64, i64)> {
    let (path, base) = (path?, base?);
    let scale = i64::try_from(path.scale(base)?).ok()?;
    let insn = path.insn(reject.pc()?)?;
    let by_insn = insn.memory().map_or(0, |(_, off, _)| i64::from(off));
    let state = reject.trail()?.register(base)?;
    let mut fields = state.split([',', '(', ')']);
    let by_reg = match fields.find_map(|field| field.strip_prefix("off=")) {
        Some(off) => off.parse().ok()?,
        None => 0,
    };
    let fixed = by_insn + by_reg;
    let rest = off - fixed;
    (scale > 0 && rest > 0 && rest % scale == 0).then_some((rest / scale, scale, fixed))
}
