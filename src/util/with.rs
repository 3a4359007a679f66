//! Methods that return a value with one field changed.

/// Defines methods for the fields of an options struct: `with_log(log: LogLevel)` returns the
/// value with another `log`. A field of type `Option<T>` can take `impl Into<Option<T>>`.
macro_rules! with {
    ($($method:ident($field:ident: $value:ty);)*) => {
        $(
            #[doc = concat!("The same with this field `", stringify!($field), "`.")]
            #[must_use]
            pub fn $method(mut self, $field: $value) -> Self {
                self.$field = $field.into();
                self
            }
        )*
    };
}
pub(crate) use with;

#[cfg(test)]
mod tests {
    #[derive(Debug, Default, PartialEq)]
    struct Options {
        name: String,
        limit: Option<u32>,
    }

    impl Options {
        with! {
            with_name(name: impl Into<String>);
            with_limit(limit: impl Into<Option<u32>>);
        }
    }

    #[test]
    fn one_field_changes() {
        let named = Options::default().with_name("a");
        let both = named.with_limit(3);
        assert_eq!((&*both.name, both.limit), ("a", Some(3)));
        assert_eq!(both.with_limit(None).limit, None);
    }
}
