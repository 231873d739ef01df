//! Images of digits, and the file they come from: see `data/README.md`.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Pixels of an image.
pub const PIXELS: usize = 64;
/// What an image may show.
pub const CLASSES: usize = 10;
/// Every seventh line tests, the others train.
const TEST: usize = 7;
const LINES: usize = 1797;

/// Images and what they show.
#[derive(Clone, Debug, Default)]
pub struct Images {
    /// From 0 (white) to 1 (black), row by row, image after image.
    pub pixels: Vec<f32>,
    /// 0 to 9, one an image.
    pub labels: Vec<u8>,
}

/// What may be wrong with the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// It cannot be read.
    #[error("cannot read {}: {error}. Name the file with --data; it is examples/data/digits.csv in the sources", path.display())]
    Unreadable {
        /// Where it was looked for.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It holds something else.
    #[error("{}, line {line}: {what}. The file is damaged or another one: restore examples/data/digits.csv", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong there.
        what: String,
    },
}

impl Images {
    /// The images to train with and those to test with.
    ///
    /// # Errors
    ///
    /// When the file is not the one described in `data/README.md`.
    pub fn load(path: &Path) -> Result<(Self, Self), DataError> {
        let text = fs::read_to_string(path)
            .map_err(|error| DataError::Unreadable { path: path.to_path_buf(), error })?;
        let damaged = |line, what| DataError::Damaged { path: path.to_path_buf(), line, what };
        let (mut training, mut test) = (Self::default(), Self::default());
        for (line, numbers) in (1..).zip(text.lines()) {
            let images = if line % TEST == 0 { &mut test } else { &mut training };
            images.push(numbers).map_err(|what| damaged(line, what))?;
        }
        match training.len() + test.len() {
            LINES => Ok((training, test)),
            lines => Err(damaged(lines, format!("the file has {lines} lines instead of {LINES}"))),
        }
    }

    /// Appends one line: 64 pixels from 0 to 16 and a digit.
    fn push(&mut self, line: &str) -> Result<(), String> {
        let numbers: Vec<&str> = line.split(',').collect();
        let Some((label, pixels)) = numbers.split_last().filter(|(_, pixels)| pixels.len() == PIXELS) else {
            return Err(format!("{} numbers instead of 65", numbers.len()));
        };
        for pixel in pixels {
            self.pixels.push(f32::from(number(pixel, 16)?) / 8.0 - 1.0);
        }
        self.labels.push(number(label, 9)?);
        Ok(())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Copies of the images with these numbers.
    #[must_use]
    pub fn select(&self, numbers: &[usize]) -> Self {
        let pixels = numbers.iter().flat_map(|number| &self.pixels[number * PIXELS..][..PIXELS]);
        Self {
            pixels: pixels.copied().collect(),
            labels: numbers.iter().map(|number| self.labels[*number]).collect(),
        }
    }
}

fn number(text: &str, largest: u8) -> Result<u8, String> {
    text.parse()
        .ok()
        .filter(|number| *number <= largest)
        .ok_or_else(|| format!("{text:?} is not a number from 0 to {largest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/digits.csv");

    #[test]
    fn every_seventh_line_tests() {
        let (training, test) = Images::load(Path::new(FILE)).unwrap();
        assert_eq!((training.len(), test.len()), (1541, 256));
        assert_eq!(training.labels[..6], [0, 1, 2, 3, 4, 5]);
        assert_eq!(test.labels[..2], [6, 3]);
        assert_eq!(training.pixels.len(), 1541 * PIXELS);
        assert_eq!(training.pixels[2..4], [-0.375, 0.625]);
    }

    #[test]
    fn a_damaged_file_is_refused_at_its_line() {
        let path = std::env::temp_dir().join(format!("gradwire-digits-{}.csv", std::process::id()));
        let good = fs::read_to_string(FILE).unwrap();
        let lines: Vec<&str> = good.lines().collect();
        let damage = |line: usize, text: &str| {
            let mut lines = lines.clone();
            lines[line - 1] = text;
            lines.join("\n")
        };
        let row = |label: &str| format!("{}{label}", "16,".repeat(PIXELS));
        for (text, expected) in [
            (String::new(), "line 0: the file has 0 lines"),
            (lines[..1700].join("\n"), "line 1700: the file has 1700 lines instead of 1797"),
            (damage(7, "1,2,3"), "line 7: 3 numbers instead of 65"),
            (damage(9, &row("10")), "line 9: \"10\" is not a number from 0 to 9"),
            (
                damage(1797, &row("3").replacen("16", "17", 1)),
                "line 1797: \"17\" is not a number from 0 to 16",
            ),
            (damage(2, &row("x")), "line 2: \"x\" is not"),
        ] {
            fs::write(&path, text).unwrap();
            let error = Images::load(&path).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("restore"), "{error}");
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(matches!(Images::load(&path), Err(DataError::Unreadable { .. })));
        fs::remove_file(&path).unwrap();
        assert!(Images::load(&path).unwrap_err().to_string().contains("--data"));
    }
}
