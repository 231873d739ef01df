//! What an algorithm costs: the alpha-beta-gamma model of one port per rank that sends and receives at once.

use super::Shape;
use crate::pattern::hypercube::Hypercube;
use std::time::Duration;

/// What the ranks are joined by. Equal on all ranks of a communicator, or they would choose different algorithms;
/// nominal, not measured, where a second run must give the same bits.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Links {
    /// Seconds from sending an empty message to its arrival (alpha).
    pub latency: f64,
    /// Seconds a rank is busy with one message, whatever its size; messages to different ranks overlap but for it.
    pub overhead: f64,
    /// Bytes per second in one direction (1/beta).
    pub bandwidth: f64,
    /// The part of `bandwidth` that remains while every rank sends to every other: 1 on a perfect switch.
    pub crossing: f64,
    /// Bytes of contributions folded per second (1/gamma).
    pub reduction: f64,
}

impl Links {
    /// Links of which only latency and bandwidth (bytes per second, one direction) are known.
    pub(crate) fn new(latency: Duration, bandwidth: f64) -> Self {
        let latency = latency.as_secs_f64();
        Self { latency, overhead: latency / 10.0, bandwidth, crossing: 0.8, reduction: 10e9 }
    }
}

/// Bytes of a segment, nominally: executors cut as their transport likes it.
const SEGMENT: f64 = 256.0 * 1024.0;

/// How often each of the links' costs is paid, by the rank that pays most.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Cost {
    /// Messages that wait for one another.
    pub rounds: f64,
    /// Messages that one rank sends or receives.
    pub messages: f64,
    /// Bytes through one direction of a port.
    pub bytes: f64,
    /// As `bytes`, while every rank sends to every other.
    pub crossing_bytes: f64,
    /// Bytes of contributions folded into others.
    pub reduced_bytes: f64,
}

impl Cost {
    /// Adds bytes that a port carries while every rank sends to every other. Two ranks do not cross.
    pub(super) fn between_all_pairs(self, shape: &Shape, bytes: f64) -> Self {
        if shape.ranks <= 2 {
            Self { bytes: self.bytes + bytes, ..self }
        } else {
            Self { crossing_bytes: self.crossing_bytes + bytes, ..self }
        }
    }

    /// Adds the folding of ranks left over by the hypercube into others, and the way back.
    pub(super) fn folding(self, cube: Hypercube, bytes: f64) -> Self {
        if cube.extra() == 0 {
            return self;
        }
        Self {
            rounds: self.rounds + 2.0,
            messages: self.messages + 2.0,
            bytes: self.bytes + 2.0 * bytes,
            reduced_bytes: self.reduced_bytes + bytes,
            ..self
        }
    }

    /// A chain of all ranks through which a vector flows in segments: it takes as long as the vector takes to pass one
    /// rank, after the first segment has come through.
    pub(super) fn chain(shape: &Shape) -> Self {
        let hops = (shape.ranks - 1) as f64;
        let bytes = shape.bytes() as f64;
        Self {
            rounds: hops,
            messages: hops,
            bytes: bytes + (hops - 1.0) * bytes.min(SEGMENT),
            ..Self::default()
        }
    }

    /// The modelled time.
    pub(crate) fn seconds(&self, links: &Links) -> f64 {
        self.rounds * links.latency
            + self.messages * links.overhead
            + self.bytes / links.bandwidth
            + self.crossing_bytes / (links.bandwidth * links.crossing)
            + self.reduced_bytes / links.reduction
    }
}
