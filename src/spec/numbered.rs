//! One way to write an enumeration of the kernel: variant, number, printed name
//! and, where a table needs them, further columns in the same row.

/// Defines an enum whose variants carry the kernel's number and name.
///
/// A row is `Variant = number, "name";`. With `: Row` after the enum's name each
/// row goes on with `=> expression` of that type, and `info()` gives it.
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
            /// Every row, by rising number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The number of the kernel's interface.
            #[must_use]
            pub const fn number(self) -> u32 {
                self as u32
            }

            /// The name that libbpf and bpftool print.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// The row with this number, if Linux 6.18 knows one.
            #[must_use]
            pub const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The row with this name, as [`name`](Self::name) prints it.
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

    /// The laws of every numbered table: dense, and each way back leads home.
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
