use super::Codec;
use crate::wire::layer::{Layer, PAYLOAD};
use flatbuffers::{FlatBufferBuilder, Vector};

#[rustfmt::skip]
#[allow(
    clippy::all, clippy::undocumented_unsafe_blocks, clippy::multiple_unsafe_ops_per_block, clippy::use_self,
    clippy::missing_safety_doc, clippy::semicolon_if_nothing_returned, missing_docs, missing_debug_implementations,
    unsafe_code, unused, unreachable_pub, elided_lifetimes_in_paths, unused_qualifications,
    reason = "written by flatc"
)]
#[path = "../generated/layer_generated.rs"]
mod generated;

/// What flatc makes of the derived struct's own schema.
pub(super) struct Tables<'a> {
    layer: &'a Layer,
    builder: FlatBufferBuilder<'static>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(layer: &'a Layer) -> Self {
        Self { layer, builder: FlatBufferBuilder::with_capacity(PAYLOAD + 1024) }
    }
}

impl Codec for Tables<'_> {
    const PEER: &'static str = "flatbuffers";
    const WHAT: &'static str = "[float] / verified root";

    fn tensors(&self) -> [&[u8]; 3] {
        self.layer.tensors()
    }

    fn encode(&mut self) {
        let builder = &mut self.builder;
        builder.reset();
        let args = generated::LayerArgs {
            weight: Some(builder.create_vector(self.layer.weight.as_flattened())),
            bias: Some(builder.create_vector(&self.layer.bias)),
            scale: Some(builder.create_vector(&self.layer.scale)),
            samples: self.layer.samples,
        };
        let layer = generated::Layer::create(builder, &args);
        generated::finish_layer_buffer(builder, layer);
    }

    fn message(&self) -> &[u8] {
        self.builder.finished_data()
    }

    fn decode<R>(&self, see: impl FnOnce([&[u8]; 3]) -> R) -> R {
        match generated::root_as_layer(self.message()) {
            Ok(layer) => {
                assert!(layer.samples() != 0);
                see([layer.weight(), layer.bias(), layer.scale()]
                    .map(|tensor| tensor.map(|tensor: Vector<'_, f32>| tensor.bytes()).unwrap_or_default()))
            }
            Err(error) => unreachable!("{error}"),
        }
    }
}
