#!/bin/sh
# rustdoc, but with its JSON output, which stable Rust hides behind this variable. With the hidden
# items: a public path may lead into a hidden module.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@" -Z unstable-options --output-format json --document-hidden-items
