//! Notation for the kernel's enumerations: variant, number, printed name and, if a table
//! needs them, further columns in the same row.

/// Defines an enum whose variants carry the kernel's number and name.
///
/// A row is `Variant = number, "name";`. With `: Row` after the enum's name each row
/// continues with `=> expression` of that type, which `info()` returns.
macro_rules! numbered {
    (
        $(#[$meta:meta])*
        pub enum $name:ident : $row:ty {
            $($(#[$doc:meta])* $variant:ident = $number:literal, $text:literal => $info:expr;)*
        }
    ) => {
        numbered! {
            $(#[$meta])*
            pub enum $name { $($(#[$doc])* $variant = $number, $text;)* }
        }

        impl $name {
            /// The other columns of this row of the table.
            #[doc(hidden)]
            #[must_use]
            pub const fn info(self) -> &'static $row {
                match self {
                    $(Self::$variant => const { &$info },)*
                }
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $number:literal, $text:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum $name {
            $($(#[$doc])* #[doc = concat!("`", $text, "`, number ", $number, ".")] $variant = $number,)*
        }

        impl $name {
            /// All rows, by ascending number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The kernel's number.
            #[must_use]
            pub const fn number(self) -> u32 {
                self as u32
            }

            /// The name in libbpf and bpftool.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// The row with this number, if Linux 6.18 defines it.
            #[must_use]
            pub const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The row with this [`name`](Self::name).
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($text => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

pub(crate) use numbered;

#[cfg(test)]
mod tests {
    use crate::spec::{AttachType, MapType, ProgType};

    /// Tests of every numbered table: numbers are dense, and all conversions round-trip.
    macro_rules! holds_together {
        ($test:ident, $type:ident, first $first:literal, count $count:literal) => {
            #[test]
            fn $test() {
                assert_eq!($type::ALL.len(), $count);
                for (at, row) in (($first)..).zip($type::ALL) {
                    assert_eq!(row.number(), at, "{row}: numbers are dense");
                    assert_eq!($type::from_number(at), Some(*row));
                    assert_eq!($type::from_name(row.name()), Some(*row), "names are unique");
                }
                assert_eq!($type::from_number($first + $count), None);
                assert_eq!($type::from_name("no such name"), None);
            }
        };
    }

    holds_together!(prog_types, ProgType, first 1u32, count 32);
    holds_together!(attach_types, AttachType, first 0u32, count 58);
    holds_together!(map_types, MapType, first 1u32, count 33);
}
