//! Excerpts of untrusted inputs, and lists, in messages.

/// The largest number of characters of an excerpt.
const MAX_SHOWN: usize = 60;

/// Quotes the bytes, cut short, with control characters escaped so that a terminal does not execute them.
pub fn shown(bytes: &[u8]) -> String {
    // A character takes at most four bytes.
    let head = &bytes[..bytes.len().min(4 * (MAX_SHOWN + 1))];
    let text = String::from_utf8_lossy(head);
    let mut shown = String::from("'");
    let mut room = MAX_SHOWN;
    for character in text.chars() {
        // An escaped character counts as it is shown, so that the excerpt stays short.
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

/// The largest number of items of a list in a message.
const MAX_LISTED: usize = 20;

/// Joins items as a list in words, cut short.
pub fn list_of(items: impl IntoIterator<Item = String>) -> String {
    let mut items = items.into_iter();
    let listed: Vec<String> = items.by_ref().take(MAX_LISTED).collect();
    match (items.count(), &listed[..]) {
        (0, [first @ .., last]) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        (0, _) => listed.concat(),
        (more, _) => format!("{} and {more} more", listed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        let list = |len: usize| list_of((1..=len).map(|i| i.to_string()));
        assert_eq!([0, 1, 2, 3].map(list), ["", "1", "1 and 2", "1, 2 and 3"]);
        assert!(list(20).ends_with(", 19 and 20"));
        assert!(list(30).ends_with(", 19, 20 and 10 more"));
    }

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
