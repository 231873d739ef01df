use super::Codec;
use crate::wire::layer::Layer;
use rkyv::rancor::Error;
use rkyv::util::AlignedVec;
use zerocopy::IntoBytes;

#[derive(rkyv::Archive, rkyv::Serialize)]
struct Message {
    weight: Vec<f32>,
    bias: Vec<f32>,
    scale: Vec<f32>,
    samples: u64,
}

pub(super) struct Archive {
    message: Message,
    buffer: AlignedVec,
}

impl Archive {
    pub(super) fn new(layer: &Layer) -> Self {
        let message = Message {
            weight: layer.weight.as_flattened().to_vec(),
            bias: layer.bias.to_vec(),
            scale: layer.scale.to_vec(),
            samples: layer.samples,
        };
        Self { message, buffer: AlignedVec::new() }
    }
}

impl Codec for Archive {
    const PEER: &'static str = "rkyv";
    const WHAT: &'static str = "to_bytes / access";

    fn tensors(&self) -> [&[u8]; 3] {
        [self.message.weight.as_bytes(), self.message.bias.as_bytes(), self.message.scale.as_bytes()]
    }

    fn encode(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        match rkyv::api::high::to_bytes_in::<_, Error>(&self.message, buffer) {
            Ok(buffer) => self.buffer = buffer,
            Err(error) => unreachable!("{error}"),
        }
    }

    fn message(&self) -> &[u8] {
        &self.buffer
    }

    fn decode<R>(&self, see: impl FnOnce([&[u8]; 3]) -> R) -> R {
        match rkyv::access::<ArchivedMessage, Error>(&self.buffer) {
            Ok(message) => {
                assert!(message.samples != 0);
                see([&message.weight, &message.bias, &message.scale]
                    .map(|tensor| tensor.as_slice().as_bytes()))
            }
            Err(error) => unreachable!("{error}"),
        }
    }
}
