//! Idioms that plain technical English does without. Each makes a newcomer read a sentence twice.
//!
//! The words are put together with `concat!`, so that this file does not contain them.

use crate::prose::Sentence;

/// The most words of a sentence.
pub const MAX_SENTENCE_WORDS: usize = 35;

/// For code, threads and callers, say the reader, the caller, the writer thread.
const PERSONS: [&str; 4] = [concat!("w", "ho"), concat!("w", "hoever"), concat!("no", "body"), concat!("some", "body")];
/// They follow "so" and hide a number.
const AMOUNTS: [&str; 4] = ["many", "much", "long", "far"];

/// A class of idioms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Idiom {
    /// A person stands for code.
    Person,
    /// A vague amount, in place of a number or its name.
    Amount,
    /// The sentence begins with the genitive of its object: "Of a page, …".
    Inversion,
    /// The sentence has more than [`MAX_SENTENCE_WORDS`] words.
    LongSentence,
}

/// The idioms of one sentence, each with its words for the message.
pub fn find(sentence: &Sentence) -> Vec<(Idiom, String)> {
    let mut found = Vec::new();
    let words: Vec<String> = sentence
        .text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    found
        .extend(words.iter().filter(|word| PERSONS.contains(&word.as_str())).map(|word| (Idiom::Person, word.clone())));
    for pair in words.windows(2).filter(|pair| pair[0] == "so" && AMOUNTS.contains(&pair[1].as_str())) {
        found.push((Idiom::Amount, pair.join(" ")));
    }
    let start = || sentence.written.chars().take(60).collect::<String>();
    if words.first().is_some_and(|word| word == "of") {
        found.push((Idiom::Inversion, start()));
    }
    let num_words = sentence.num_words();
    if num_words > MAX_SENTENCE_WORDS {
        found.push((Idiom::LongSentence, format!("{num_words} words: {}", start())));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idioms(text: &str) -> Vec<(Idiom, String)> {
        find(&Sentence { line: 1, written: text.to_owned(), text: text.to_owned() })
    }

    #[test]
    fn persons_and_amounts_are_whole_words() {
        let text = format!("{}'s list: {}, So {} of them, so {}", PERSONS[2], PERSONS[0], AMOUNTS[0], AMOUNTS[3]);
        let found = idioms(&text);
        let expected = [Idiom::Person, Idiom::Person, Idiom::Amount, Idiom::Amount];
        assert_eq!(found.iter().map(|(idiom, _)| *idiom).collect::<Vec<_>>(), expected);
        assert_eq!(found[2].1, format!("so {}", AMOUNTS[0]));
        assert_eq!(idioms("The whole list is so, or as long as the other one."), []);
    }

    #[test]
    fn inversions_begin_a_sentence() {
        assert_eq!(idioms("Of a page, the lists."), [(Idiom::Inversion, "Of a page, the lists.".to_owned())]);
        assert_eq!(idioms("The lists of a page, offset by one. Office"), []);
    }

    #[test]
    fn sentences_have_at_most_35_words() {
        assert_eq!(idioms(&"word ".repeat(35)), []);
        assert_eq!(idioms(&"word ".repeat(36))[0].0, Idiom::LongSentence);
    }
}
