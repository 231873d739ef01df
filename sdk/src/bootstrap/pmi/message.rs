//! One line of PMI-1: `key=value` pairs, separated by spaces.
#![forbid(unsafe_code)]

/// What the process manager answered.
#[derive(PartialEq, Debug)]
pub(super) struct Message(Vec<(String, String)>);

impl Message {
    /// Reads a line, in whatever order its pairs come. A word without `=` belongs to the value before it:
    /// messages for people contain spaces.
    pub(super) fn parse(line: &str) -> Self {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for word in line.split_ascii_whitespace() {
            match (word.split_once('='), pairs.last_mut()) {
                (Some((key, value)), _) => pairs.push((key.to_owned(), value.to_owned())),
                (None, Some((_, value))) => *value = format!("{value} {word}"),
                (None, None) => {}
            }
        }
        Self(pairs)
    }

    pub(super) fn value(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == key).map(|(_, value)| value.as_str())
    }

    pub(super) fn number(&self, key: &str) -> Option<usize> {
        self.value(key)?.parse().ok()
    }

    /// What went wrong, if the answer says that something did.
    pub(super) fn failure(&self) -> Option<String> {
        let code = self.value("rc").filter(|code| *code != "0")?;
        let reason = self.value("msg").unwrap_or("no reason given");
        Some(format!("code {code}: {reason}"))
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(super) fn to_hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The opposite of [`to_hex`].
pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16)?).ok();
    let (pairs, rest) = text.as_bytes().as_chunks();
    let bytes = pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect();
    rest.is_empty().then_some(bytes)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pairs_are_found_in_any_order() {
        let message = Message::parse("rc=0  cmd=maxes keylen_max=64\tvallen_max=1024 ");
        assert_eq!(message.value("cmd"), Some("maxes"));
        assert_eq!(message.number("vallen_max"), Some(1024));
        assert_eq!(message.value("missing"), None);
        assert_eq!(message.failure(), None);
    }

    #[test]
    fn a_reason_may_have_spaces_and_a_value_equals_signs() {
        let message = Message::parse("cmd=get_result rc=-1 msg=key_x not found value=a=b");
        assert_eq!(message.failure().as_deref(), Some("code -1: key_x not found"));
        assert_eq!(message.value("value"), Some("a=b"));
    }

    #[test]
    fn nonsense_is_a_message_without_pairs() {
        for line in ["", "   ", "words only", "\u{1}"] {
            assert_eq!(Message::parse(line), Message(vec![]));
        }
    }

    proptest! {
        #[test]
        fn any_line_is_a_message(line: String, key: String) {
            let message = Message::parse(&line);
            message.value(&key);
            message.failure();
            from_hex(&line);
        }

        #[test]
        fn a_value_is_found_among_others(key in "[a-z_]{1,8}", value in "[!-~]{0,40}", other in "[A-Z]{1,8}=[!-~]{0,9}") {
            let message = Message::parse(&format!("{other} {key}={value} {other}"));
            prop_assert_eq!(message.value(&key), Some(value.as_str()));
        }
    }

    #[test]
    fn hexadecimal_there_and_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&to_hex(&bytes)), Some(bytes));
        assert_eq!(to_hex(&[0, 0xa5]), "00a5");
        for text in ["0", "0g", "é", "00 1", "+1"] {
            assert_eq!(from_hex(text), None, "{text:?}");
        }
    }
}
