//! Our own image: it has `windlass` and no shell, and needs none.

use windlass_engine::image::ImageRef;

/// The program in it, which is looked for where programs are.
pub(crate) const PROGRAM: &str = "windlass";

/// By the last piece of its name, so that mirrors count too.
pub(crate) fn is_own(image: &str) -> bool {
    ImageRef::parse(image).is_ok_and(|image| image.name == PROGRAM)
}
