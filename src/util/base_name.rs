//! The name of a file without its folder.

/// The part of a path behind the last `/`.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
