//! What the program is told.

/// How Gradwire finds the other ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Start {
    /// By itself, as in a program without MPI.
    Own,
    /// Through the MPI library.
    Mpi,
    /// Through the MPI library, over which everything is sent then.
    Through,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments {
    pub(crate) calls: usize,
    pub(crate) seed: u64,
    pub(crate) start: Start,
    /// From this call on, the first value that rank 0 gets from Gradwire is changed.
    pub(crate) corrupt: Option<usize>,
}

impl Arguments {
    pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self { calls: 2000, seed: 1, start: Start::Own, corrupt: None };
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("{name} needs a value"))?;
            let number =
                || value.parse().map_err(|_| format!("{name} is {value:?}, but must be a whole number"));
            match name.as_str() {
                "--calls" => arguments.calls = number()?,
                "--seed" => arguments.seed = number()? as u64,
                "--corrupt" => arguments.corrupt = Some(number()?),
                "--start" => {
                    arguments.start = match value.as_str() {
                        "own" => Start::Own,
                        "mpi" => Start::Mpi,
                        "through" => Start::Through,
                        _ => return Err(format!("--start is {value:?}, but must be own, mpi or through")),
                    }
                }
                _ => return Err(format!("there is no {name}: --calls, --seed, --start, --corrupt")),
            }
        }
        Ok(arguments)
    }
}
