//! Introductions: who a process is and where it can be reached.

use super::envelope::{Builder, open, seal, unexpected};
use super::reader::Reader;
use super::{ControlError, limits, wire};
use flatbuffers::WIPOffset;

/// A process introduces itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hello {
    /// The job it belongs to.
    pub job: String,
    /// Proof that it knows the job's secret; empty in jobs without one.
    pub proof: Vec<u8>,
    /// The version of the library.
    pub version: String,
    /// Its rank in the job.
    pub rank: u32,
    /// How many ranks it believes the job to have.
    pub size: u32,
    /// The incarnation of the job.
    pub epoch: u32,
    /// Its host's name, for messages. Never used to decide what is one host.
    pub host: String,
    /// Its process number there.
    pub pid: u32,
    /// The processors it may run on: bit k of word n is processor 64 n + k.
    pub processors: Vec<u64>,
    /// Where it can be reached, by each of its transports.
    pub addresses: Vec<TransportAddress>,
}

/// Where one transport of a process can be reached.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TransportAddress {
    /// The transport's name: `shm`, `tcp`, ...
    pub transport: String,
    /// Its address, opaque to all but that transport.
    pub address: Vec<u8>,
}

/// All processes of a job, by rank.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PeerTable {
    /// The hello of rank r stands at index r.
    pub hellos: Vec<Hello>,
}

impl Hello {
    /// The bytes to send.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        seal(|builder| (wire::Body::Hello, self.write(builder).as_union_value()))
    }

    /// Reads a hello. Whether its rank, size and proof are right is for the job to say.
    ///
    /// # Errors
    ///
    /// [`ControlError`], by the first thing that is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, ControlError> {
        let (message, bytes) = open(bytes)?;
        let hello = message.body_as_hello().ok_or_else(|| unexpected("Hello", message))?;
        Self::read(&mut Reader::new(bytes), hello)
    }

    fn write<'a>(&self, builder: &mut Builder) -> WIPOffset<wire::Hello<'a>> {
        let addresses: Vec<_> = self.addresses.iter().map(|address| address.write(builder)).collect();
        let args = wire::HelloArgs {
            job: Some(builder.create_string(&self.job)),
            proof: Some(builder.create_vector(&self.proof)),
            version: Some(builder.create_string(&self.version)),
            rank: self.rank,
            size: self.size,
            epoch: self.epoch,
            host: Some(builder.create_string(&self.host)),
            pid: self.pid,
            processors: Some(builder.create_vector(&self.processors)),
            addresses: Some(builder.create_vector(&addresses)),
        };
        wire::Hello::create(builder, &args)
    }

    fn read(reader: &mut Reader, hello: wire::Hello<'_>) -> Result<Self, ControlError> {
        Ok(Self {
            job: reader.text("job", hello.job(), limits::NAME)?,
            proof: reader.bytes("proof", hello.proof(), limits::PROOF)?,
            version: reader.text("version", hello.version(), limits::NAME)?,
            rank: hello.rank(),
            size: hello.size(),
            epoch: hello.epoch(),
            host: reader.text("host", hello.host(), limits::NAME)?,
            pid: hello.pid(),
            processors: reader.numbers("processors", hello.processors(), limits::PROCESSORS)?,
            addresses: reader.entries(
                "addresses",
                hello.addresses(),
                limits::ADDRESSES,
                TransportAddress::read,
            )?,
        })
    }
}

impl TransportAddress {
    fn write<'a>(&self, builder: &mut Builder) -> WIPOffset<wire::TransportAddress<'a>> {
        let args = wire::TransportAddressArgs {
            transport: Some(builder.create_string(&self.transport)),
            address: Some(builder.create_vector(&self.address)),
        };
        wire::TransportAddress::create(builder, &args)
    }

    fn read(reader: &mut Reader, address: wire::TransportAddress<'_>) -> Result<Self, ControlError> {
        Ok(Self {
            transport: reader.text("transport", address.transport(), limits::NAME)?,
            address: reader.bytes("address", address.address(), limits::ADDRESS)?,
        })
    }
}

impl PeerTable {
    /// The bytes to send.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        seal(|builder| {
            let hellos: Vec<_> = self.hellos.iter().map(|hello| hello.write(builder)).collect();
            let args = wire::PeerTableArgs { hellos: Some(builder.create_vector(&hellos)) };
            (wire::Body::PeerTable, wire::PeerTable::create(builder, &args).as_union_value())
        })
    }

    /// Reads a table.
    ///
    /// # Errors
    ///
    /// [`ControlError`], by the first thing that is wrong; [`ControlError::Rank`] unless each rank stands in its place
    /// and all of them know how many they are.
    pub fn decode(bytes: &[u8]) -> Result<Self, ControlError> {
        let (message, bytes) = open(bytes)?;
        let table = message.body_as_peer_table().ok_or_else(|| unexpected("PeerTable", message))?;
        let hellos = Reader::new(bytes).entries("hellos", table.hellos(), limits::RANKS, Hello::read)?;
        for (index, &Hello { rank, size, .. }) in hellos.iter().enumerate() {
            if rank as usize != index || size as usize != hellos.len() {
                return Err(ControlError::Rank { index, rank, size, entries: hellos.len() });
            }
        }
        Ok(Self { hellos })
    }
}
