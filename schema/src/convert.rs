//! From the format in memory to the format on the wire, and back.

use crate::Element;

/// Values of this format can travel as `W`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot travel as `{W}`",
    note = "floats can travel as f64, f32, bf16, f16, f8e4m3 or f8e5m2; integers only as themselves"
)]
pub trait ConvertTo<W: Element>: Element {
    /// Converts each element; floats round to nearest even. Both slices have the same length.
    fn convert_to(source: &[Self], destination: &mut [W]);
    /// Converts each element back. Both slices have the same length.
    fn convert_from(source: &[W], destination: &mut [Self]);
}

impl<T: Element> ConvertTo<T> for T {
    fn convert_to(source: &[Self], destination: &mut [T]) {
        destination.copy_from_slice(source);
    }

    fn convert_from(source: &[T], destination: &mut [Self]) {
        destination.copy_from_slice(source);
    }
}
