mod objects;
mod run;
mod widget;

/// Labels, names and owners of children.
mod children;
/// From the first pass to the last: finalizers, pause, panics, retries.
mod lifecycle;
/// Fields and objects that somebody else holds.
mod ownership;
/// Kinds whose objects cannot simply be changed, and the order of writes.
mod replace;
/// Conditions, events and foreign parts of the status.
mod status;
