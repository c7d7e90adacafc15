//! Pieces of input in messages.

/// Characters of a piece of input that a message shows.
const MAX_SHOWN: usize = 60;

/// The bytes in quotes, cut short, without characters that a terminal would obey.
pub(crate) fn shown(bytes: &[u8]) -> String {
    // Four bytes are the most that a character takes.
    let head = &bytes[..bytes.len().min(4 * (MAX_SHOWN + 1))];
    let text = String::from_utf8_lossy(head);
    let mut shown = String::from("'");
    let mut room = MAX_SHOWN;
    for character in text.chars() {
        let length = if character.is_control() { character.escape_default().count() } else { 1 };
        if length > room {
            shown.push('…');
            break;
        }
        room -= length;
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown.push('\'');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_hostile_input_is_tamed() {
        assert_eq!(shown(b"a b"), "'a b'");
        assert_eq!(shown(b"\x1b[2J\r\0"), r"'\u{1b}[2J\r\u{0}'");
        assert_eq!(shown("é\u{9b}".as_bytes()), r"'é\u{9b}'");
        assert_eq!(shown(&[b'x'; 61]), format!("'{}…'", "x".repeat(60)));
        assert_eq!(shown(&[b'x'; 60]), format!("'{}'", "x".repeat(60)));
        assert_eq!(shown(&[0xff; 1000]).chars().count(), 63);
        assert_eq!(shown(&[0; 100]), format!("'{}…'", r"\u{0}".repeat(12)));
    }
}
