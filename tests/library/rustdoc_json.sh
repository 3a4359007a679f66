#!/bin/sh
# rustdoc, but with its JSON output, which stable Rust hides behind this variable.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@" -Z unstable-options --output-format json
