//! Regions by name, for transports in which software moves the bytes: the one place that turns a region into
//! slices.
