use super::Codec;
use crate::wire::layer::{Layer, PAYLOAD};
use bytes::Bytes;
use prost::Message;
use zerocopy::IntoBytes;

/// Repeated floats.
#[derive(Clone, PartialEq, Message)]
struct FloatsMessage {
    #[prost(float, repeated, tag = "1")]
    weight: Vec<f32>,
    #[prost(float, repeated, tag = "2")]
    bias: Vec<f32>,
    #[prost(float, repeated, tag = "3")]
    scale: Vec<f32>,
    #[prost(uint64, tag = "4")]
    samples: u64,
}

pub(super) struct Floats {
    message: FloatsMessage,
    buffer: Vec<u8>,
}

impl Floats {
    pub(super) fn new(layer: &Layer) -> Self {
        let message = FloatsMessage {
            weight: layer.weight.as_flattened().to_vec(),
            bias: layer.bias.to_vec(),
            scale: layer.scale.to_vec(),
            samples: layer.samples,
        };
        Self { message, buffer: Vec::with_capacity(PAYLOAD + 256) }
    }
}

impl Codec for Floats {
    const PEER: &'static str = "prost";
    const WHAT: &'static str = "repeated float";

    fn tensors(&self) -> [&[u8]; 3] {
        [self.message.weight.as_bytes(), self.message.bias.as_bytes(), self.message.scale.as_bytes()]
    }

    fn encode(&mut self) {
        self.buffer.clear();
        if let Err(error) = self.message.encode(&mut self.buffer) {
            unreachable!("{error}");
        }
    }

    fn message(&self) -> &[u8] {
        &self.buffer
    }

    fn decode<R>(&self, see: impl FnOnce([&[u8]; 3]) -> R) -> R {
        match FloatsMessage::decode(&self.buffer[..]) {
            Ok(message) => {
                assert!(message.samples != 0);
                see([message.weight.as_bytes(), message.bias.as_bytes(), message.scale.as_bytes()])
            }
            Err(error) => unreachable!("{error}"),
        }
    }
}

/// Shared bytes, which the reader has to make numbers of.
#[derive(Clone, PartialEq, Message)]
struct RawMessage {
    #[prost(bytes = "bytes", tag = "1")]
    weight: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    bias: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    scale: Bytes,
    #[prost(uint64, tag = "4")]
    samples: u64,
}

pub(super) struct Raw {
    message: RawMessage,
    buffer: Vec<u8>,
    received: Bytes,
}

impl Raw {
    pub(super) fn new(layer: &Layer) -> Self {
        let [weight, bias, scale] = layer.tensors().map(Bytes::copy_from_slice);
        let message = RawMessage { weight, bias, scale, samples: layer.samples };
        let received = Bytes::from(message.encode_to_vec());
        Self { message, buffer: Vec::with_capacity(PAYLOAD + 256), received }
    }
}

impl Codec for Raw {
    const PEER: &'static str = "prost";
    const WHAT: &'static str = "bytes; untyped";

    fn tensors(&self) -> [&[u8]; 3] {
        [&self.message.weight, &self.message.bias, &self.message.scale]
    }

    fn encode(&mut self) {
        self.buffer.clear();
        if let Err(error) = self.message.encode(&mut self.buffer) {
            unreachable!("{error}");
        }
    }

    fn message(&self) -> &[u8] {
        &self.received
    }

    fn decode<R>(&self, see: impl FnOnce([&[u8]; 3]) -> R) -> R {
        match RawMessage::decode(self.received.clone()) {
            Ok(message) => {
                assert!(message.samples != 0);
                see([&message.weight, &message.bias, &message.scale])
            }
            Err(error) => unreachable!("{error}"),
        }
    }
}
