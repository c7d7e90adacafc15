//! The sentences of comments and documents, with code and link targets masked.

use crate::markdown::{heading, mask_code_and_targets, outside_fences};
use crate::source::Source;

/// A full stop after one of these does not end a sentence.
const ABBREVIATIONS: [&str; 12] =
    ["e.g.", "i.e.", "al.", "etc.", "vs.", "cf.", "Sec.", "Fig.", "No.", "pp.", "p.", "approx."];

/// One sentence and the line of its first word, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// The line, counted from 1.
    pub line: usize,
    /// As written, on one line.
    pub written: String,
    /// The text at equal positions, with an `x` for every byte of a code span.
    pub text: String,
}

impl Sentence {
    /// The words of the sentence; a code span or a link target is part of one word.
    pub fn num_words(&self) -> usize {
        self.text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
    }
}

/// The sentences of a Markdown document. Code blocks do not count.
pub fn of_document(text: &str) -> Vec<Sentence> {
    sentences_of(text.lines().enumerate().map(|(index, line)| (index + 1, line)))
}

/// The sentences of all comments of a Rust file. A comment ends where code or another kind of comment begins.
pub fn of_comments(source: &Source) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    let mut block: Vec<(usize, &str)> = Vec::new();
    let mut kind_before = None;
    for (index, comment) in source.comments.iter().enumerate() {
        let comment = comment.trim();
        // A comment behind code stands alone.
        let kind = kind_of(comment).filter(|_| source.code[index].trim().is_empty());
        if kind.is_none() || kind != kind_before {
            sentences.extend(sentences_of(block.drain(..)));
        }
        if !comment.is_empty() {
            block.push((index + 1, bare(comment)));
        }
        kind_before = kind;
    }
    sentences.extend(sentences_of(block.drain(..)));
    sentences
}

/// The mark that begins a comment line. The lines of a block comment are of one kind.
fn kind_of(comment: &str) -> Option<&'static str> {
    if comment.is_empty() {
        return None;
    }
    ["//!", "///", "//"].into_iter().find(|mark| comment.starts_with(mark)).or(Some("/*"))
}

fn bare(comment: &str) -> &str {
    let text = comment.trim_start_matches(['/', '!', '*']).trim_end_matches("*/");
    text.strip_prefix(' ').unwrap_or(text)
}

fn sentences_of<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    let mut paragraph = Paragraph::default();
    for (number, line) in outside_fences(lines) {
        let text = line.trim_start().trim_start_matches('>').trim();
        let item = list_item(text);
        let is_apart = text.starts_with('|') || heading(text).is_some() || is_numpydoc_head(text);
        if text.is_empty() || item.is_some() || is_apart {
            paragraph.end(&mut sentences);
        }
        for cell in cells(item.unwrap_or(text)) {
            paragraph.add(number, cell);
            if is_apart {
                paragraph.end(&mut sentences);
            }
        }
    }
    paragraph.end(&mut sentences);
    sentences
}

/// Whether a line is the head of a parameter in a docstring of Python, such as `source, target : key`, or the line under
/// the head of a section.
fn is_numpydoc_head(line: &str) -> bool {
    let is_name = |name: &str| {
        let name = name.trim_start_matches('*');
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    let is_rule = line.len() > 2 && line.bytes().all(|byte| byte == b'-');
    is_rule || line.split_once(" : ").is_some_and(|(names, _)| names.split(", ").all(is_name))
}

/// The text of a list item such as `- text` or `12. text`.
fn list_item(line: &str) -> Option<&str> {
    let bullet = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark));
    bullet.or_else(|| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_number = rest.len() < line.len();
        [". ", ") "].iter().find_map(|mark| rest.strip_prefix(mark)).filter(|_| is_number)
    })
}

/// The cells of a table's row; another line is one cell.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    let is_row = line.starts_with('|');
    let cells = line.split(move |c| is_row && c == '|').map(str::trim);
    cells.filter(|cell| cell.contains(|c: char| !"-: ".contains(c)))
}

/// The lines of a paragraph, joined by spaces.
#[derive(Debug, Default)]
struct Paragraph {
    text: String,
    /// The position of each line in the text, and its number.
    starts: Vec<(usize, usize)>,
}

impl Paragraph {
    fn add(&mut self, line: usize, text: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.starts.push((self.text.len(), line));
        self.text.push_str(text);
    }

    /// Cuts the paragraph into sentences and empties it.
    fn end(&mut self, sentences: &mut Vec<Sentence>) {
        let text = mask_code_and_targets(&self.text);
        let mut start = 0;
        for end in ends(&text) {
            let sentence = text[start..end].trim();
            let first = end - text[start..end].trim_start().len();
            let num_lines = self.starts.partition_point(|&(at, _)| at <= first);
            if !sentence.is_empty() {
                sentences.push(Sentence {
                    line: self.starts[num_lines - 1].1,
                    written: self.text[start..end].trim().to_owned(),
                    text: sentence.to_owned(),
                });
            }
            start = end;
        }
        self.text.clear();
        self.starts.clear();
    }
}

/// The positions after each sentence.
fn ends(text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    for (at, mark) in text.match_indices(['.', '?', '!']) {
        let after = text[at + 1..].trim_start_matches([')', '"', '\'', '*', '_', '”']);
        let next = after.trim_start().chars().next();
        let is_inside = next.is_some() && !after.starts_with(char::is_whitespace);
        let word = text[..=at].rsplit([' ', '(']).next().unwrap_or_default();
        // "e.g. PageRank", "J. Shun"
        let is_abbreviation =
            mark == "." && (ABBREVIATIONS.contains(&word) || word.len() == 2 && word.starts_with(char::is_uppercase));
        if !is_inside && !is_abbreviation && !next.is_some_and(char::is_lowercase) {
            ends.push(text.len() - after.len());
        }
    }
    if ends.last() != Some(&text.len()) {
        ends.push(text.len());
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Vec<(usize, String)> {
        of_document(text).into_iter().map(|sentence| (sentence.line, sentence.text)).collect()
    }

    fn comments(text: &str) -> Vec<(usize, String)> {
        of_comments(&Source::new(text)).into_iter().map(|sentence| (sentence.line, sentence.text)).collect()
    }

    fn owned<const N: usize>(expected: [(usize, &str); N]) -> [(usize, String); N] {
        expected.map(|(line, text)| (line, text.to_owned()))
    }

    #[test]
    fn sentence_ends_at_its_stop() {
        let text = "One, e.g. Two of J. Shun et al. 2013. \"Three!\" (Four.) `a. B` is 1.5 of f.rs. Five etc. six";
        let expected = [
            "One, e.g. Two of J. Shun et al. 2013.",
            "\"Three!\"",
            "(Four.)",
            "`xxxx` is 1.5 of f.rs.",
            "Five etc. six",
        ];
        assert_eq!(document(text), owned(expected.map(|text| (1, text))));
    }

    #[test]
    fn paragraphs_of_documents_are_apart() {
        let text =
            "# Head\nOne\ntwo. Three\n- four\n  five\n2. six\n\n```\ncode\n```\n| a | b. C |\n| --- | --- |\n> q\n";
        let expected = [
            (1, "# Head"),
            (2, "One two."),
            (3, "Three"),
            (4, "four five"),
            (6, "six"),
            (11, "a"),
            (11, "b."),
            (11, "C"),
            (13, "q"),
        ];
        assert_eq!(document(text), owned(expected));
    }

    #[test]
    fn comments_are_joined_by_kind() {
        let text = "//! One\n//! two.\n/// Three\n///\n/// four\nfn f() {\n    // five\n    // six\n    g(); // seven\n\
                    \x20   // eight \"\n    h(\"// no\") /* nine\n ten */\n}\n";
        let expected = [
            (1, "One two."),
            (3, "Three"),
            (5, "four"),
            (7, "five six"),
            (9, "seven"),
            (10, "eight \""),
            (11, "nine"),
            (12, "ten"),
        ];
        assert_eq!(comments(text), owned(expected));
    }

    #[test]
    fn parameters_of_docstrings_are_apart() {
        let text = "/// Parameters\n/// ----------\n/// first, *rest : int\n///     The numbers,\n///     all of them.\n\
                    /// then : bool\n///     Whether: so.\nfn f() {}";
        let expected = [
            (1, "Parameters"),
            (3, "first, *rest : int"),
            (4, "The numbers, all of them."),
            (6, "then : bool"),
            (7, "Whether: so."),
        ];
        assert_eq!(comments(text), owned(expected));
    }

    #[test]
    fn code_and_targets_are_single_words() {
        let sentence = &of_document("The `a b c` of [d e](f.md) – done.")[0];
        assert_eq!(sentence.num_words(), 6);
        assert_eq!(sentence.written, "The `a b c` of [d e](f.md) – done.");
    }
}
