//! A file to be linked, with its types read.

use super::super::error::{ErrorLocation, ObjectError, Problem};
use super::super::image::Image;
use crate::btf::{Btf, BtfExt};

/// Result of a step of linking.
pub(super) type Result<T> = std::result::Result<T, ObjectError>;

/// A file to be linked.
pub(in crate::object) struct Input<'a> {
    /// Its name in messages.
    pub name: &'a str,
    pub image: Image<'a>,
    pub btf: Option<Btf>,
    pub ext: BtfExt,
}

impl<'a> Input<'a> {
    /// Reads the types of a file.
    ///
    /// # Errors
    /// Invalid BTF or BTF.ext.
    pub fn new(name: &'a str, image: Image<'a>) -> Result<Self> {
        let fault = |section: &str, error: crate::btf::BtfError| {
            let problem = Problem::Btf(error.problem.to_string());
            ObjectError::section(section, error.offset as u64, problem).of(name)
        };
        let btf = match image.find(".BTF") {
            Some((_, section)) => {
                Some(Btf::parse(&section.data).map_err(|error| fault(".BTF", error))?)
            }
            None => None,
        };
        let ext = match (&btf, image.find(".BTF.ext")) {
            (Some(btf), Some((_, section))) => {
                BtfExt::parse(&section.data, btf).map_err(|error| fault(".BTF.ext", error))?
            }
            _ => BtfExt::default(),
        };
        Ok(Self {
            name,
            image,
            btf,
            ext,
        })
    }

    /// An error about this file as a whole.
    pub fn fault(&self, text: String) -> ObjectError {
        ObjectError::new(ErrorLocation::Object, Problem::Link(text)).of(self.name)
    }
}
