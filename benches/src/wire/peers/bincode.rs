use super::Codec;
use crate::wire::layer::{Layer, PAYLOAD};
use bincode::config::{Config, standard};
use zerocopy::IntoBytes;

fn config() -> impl Config {
    standard().with_fixed_int_encoding()
}

#[derive(bincode::Encode, bincode::Decode)]
struct Message {
    weight: Vec<f32>,
    bias: Vec<f32>,
    scale: Vec<f32>,
    samples: u64,
}

/// Vectors of numbers.
pub(super) struct Owned {
    message: Message,
    buffer: Vec<u8>,
    len: usize,
}

impl Owned {
    pub(super) fn new(layer: &Layer) -> Self {
        let message = Message {
            weight: layer.weight.as_flattened().to_vec(),
            bias: layer.bias.to_vec(),
            scale: layer.scale.to_vec(),
            samples: layer.samples,
        };
        Self { message, buffer: vec![0; PAYLOAD + 256], len: 0 }
    }
}

impl Codec for Owned {
    const PEER: &'static str = "bincode";
    const WHAT: &'static str = "Vec<f32>";

    fn tensors(&self) -> [&[u8]; 3] {
        [self.message.weight.as_bytes(), self.message.bias.as_bytes(), self.message.scale.as_bytes()]
    }

    fn encode(&mut self) {
        match bincode::encode_into_slice(&self.message, &mut self.buffer, config()) {
            Ok(len) => self.len = len,
            Err(error) => unreachable!("{error}"),
        }
    }

    fn message(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    fn decode<R>(&self, see: impl FnOnce([&[u8]; 3]) -> R) -> R {
        match bincode::decode_from_slice::<Message, _>(self.message(), config()) {
            Ok((message, _)) => {
                assert!(message.samples != 0);
                see([message.weight.as_bytes(), message.bias.as_bytes(), message.scale.as_bytes()])
            }
            Err(error) => unreachable!("{error}"),
        }
    }
}

/// Bytes, which the reader has to make numbers of.
#[derive(bincode::Encode, bincode::BorrowDecode)]
struct Bytes<'a> {
    weight: &'a [u8],
    bias: &'a [u8],
    scale: &'a [u8],
    samples: u64,
}

pub(super) struct Borrowed<'a> {
    message: Bytes<'a>,
    buffer: Vec<u8>,
    len: usize,
}

impl<'a> Borrowed<'a> {
    pub(super) fn new(layer: &'a Layer) -> Self {
        let [weight, bias, scale] = layer.tensors();
        let message = Bytes { weight, bias, scale, samples: layer.samples };
        Self { message, buffer: vec![0; PAYLOAD + 256], len: 0 }
    }
}

impl Codec for Borrowed<'_> {
    const PEER: &'static str = "bincode";
    const WHAT: &'static str = "&[u8]; untyped";

    fn tensors(&self) -> [&[u8]; 3] {
        [self.message.weight, self.message.bias, self.message.scale]
    }

    fn encode(&mut self) {
        match bincode::encode_into_slice(&self.message, &mut self.buffer, config()) {
            Ok(len) => self.len = len,
            Err(error) => unreachable!("{error}"),
        }
    }

    fn message(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    fn decode<R>(&self, see: impl FnOnce([&[u8]; 3]) -> R) -> R {
        match bincode::borrow_decode_from_slice::<Bytes<'_>, _>(self.message(), config()) {
            Ok((message, _)) => {
                assert!(message.samples != 0);
                see([message.weight, message.bias, message.scale])
            }
            Err(error) => unreachable!("{error}"),
        }
    }
}
