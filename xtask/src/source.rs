//! A Rust file with its comments, strings and characters blanked out, so that rules look at code and nothing else.
//!
//! A full parser would know more and cost a dependency of many crates; the rules need only what stands where.

/// The lines of a file, twice: as written, and as code alone.
#[derive(Debug)]
pub struct Source {
    /// As written.
    pub raw: Vec<String>,
    /// The same lines and columns, with a space for every character of a comment or inside a literal.
    pub code: Vec<String>,
}

impl Source {
    /// Splits `text` and blanks out what is no code.
    pub fn new(text: &str) -> Self {
        let mut scanner = Scanner { rest: text.chars().collect(), at: 0, code: String::with_capacity(text.len()) };
        scanner.run();
        let lines = |text: &str| text.lines().map(str::to_owned).collect();
        Self { raw: lines(text), code: lines(&scanner.code) }
    }
}

struct Scanner {
    rest: Vec<char>,
    at: usize,
    code: String,
}

impl Scanner {
    fn run(&mut self) {
        while let Some(c) = self.peek(0) {
            match c {
                '/' if self.peek(1) == Some('/') => self.blank_while(|c| c != '\n'),
                '/' if self.peek(1) == Some('*') => self.blank_block_comment(),
                '"' => self.blank_string(),
                '\'' => self.blank_character(),
                c if c == '_' || c.is_alphanumeric() => self.word(),
                c => self.keep(c),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn keep(&mut self, c: char) {
        self.code.push(c);
        self.at += 1;
    }

    fn blank(&mut self) {
        if let Some(c) = self.peek(0) {
            self.code.push(if c == '\n' { '\n' } else { ' ' });
            self.at += 1;
        }
    }

    fn blank_while(&mut self, inside: impl Fn(char) -> bool) {
        while self.peek(0).is_some_and(&inside) {
            self.blank();
        }
    }

    /// Block comments nest.
    fn blank_block_comment(&mut self) {
        let mut depth = 0_u32;
        while let Some(c) = self.peek(0) {
            let pair = (c, self.peek(1));
            if pair == ('/', Some('*')) || pair == ('*', Some('/')) {
                depth = if c == '/' { depth + 1 } else { depth - 1 };
                self.blank();
            }
            self.blank();
            if depth == 0 {
                return;
            }
        }
    }

    /// The quotes stay, so that code with a string is not taken for code without.
    fn blank_string(&mut self) {
        self.keep('"');
        while let Some(c) = self.peek(0) {
            match c {
                '"' => return self.keep('"'),
                '\\' => {
                    self.blank();
                    self.blank();
                }
                _ => self.blank(),
            }
        }
    }

    /// At the opening quote of a raw string: blanks to the quote that is followed by as many hashes.
    fn blank_raw_string(&mut self, hashes: usize) {
        self.keep('"');
        while let Some(c) = self.peek(0) {
            if c == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                return self.keep('"');
            }
            self.blank();
        }
    }

    /// A quote opens a character literal or a lifetime; only the first has a closing one.
    fn blank_character(&mut self) {
        self.keep('\'');
        if self.peek(0) == Some('\\') {
            self.blank();
            self.blank();
            self.blank_while(|c| c != '\'' && c != '\n');
        } else if self.peek(1) == Some('\'') {
            self.blank();
        } else {
            return;
        }
        if self.peek(0) == Some('\'') {
            self.keep('\'');
        }
    }

    /// A word, which may turn out to be the prefix of a raw string.
    fn word(&mut self) {
        let start = self.at;
        while let Some(c) = self.peek(0).filter(|&c| c == '_' || c.is_alphanumeric()) {
            self.keep(c);
        }
        let word: String = self.rest[start..self.at].iter().collect();
        if matches!(word.as_str(), "r" | "br" | "cr") {
            let hashes = (0..).take_while(|&ahead| self.peek(ahead) == Some('#')).count();
            if self.peek(hashes) == Some('"') {
                (0..hashes).for_each(|_| self.keep('#'));
                self.blank_raw_string(hashes);
            }
        }
    }
}

/// Whether `word` stands in `text` with no letter, digit or underscore on either side; gives where it starts.
pub fn find_word(text: &str, word: &str) -> Option<usize> {
    let is_part = |c: char| c == '_' || c.is_alphanumeric();
    text.match_indices(word).map(|(start, _)| start).find(|&start| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::new(text).code.join("\n")
    }

    #[test]
    fn comments_are_blank() {
        assert_eq!(code("a // b\nc /* d /* e */ f\n g */ h"), "a     \nc               \n      h");
        assert_eq!(code("/// doc\n//! doc"), "       \n       ");
    }

    #[test]
    fn strings_are_blank_and_keep_their_quotes() {
        assert_eq!(code(r#"f("a \" // b", 'c')"#), r#"f("         ", ' ')"#);
        assert_eq!(code("x(r#\"a \" {\"#) + b\"}\""), "x(r#\"     \"#) + b\" \"");
        assert_eq!(code("\"a\n{\" }"), "\" \n \" }");
    }

    #[test]
    fn lifetimes_are_no_characters() {
        assert_eq!(code("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
        assert_eq!(code(r"['\'', '{', '\u{7d}', b'}']"), "['  ', ' ', '      ', b' ']");
    }

    #[test]
    fn columns_and_lines_stay() {
        let text = "let x = \"é\"; // ü\nlet y = 'é';\n";
        let source = Source::new(text);
        assert_eq!(source.raw.len(), source.code.len());
        for (raw, code) in source.raw.iter().zip(&source.code) {
            assert_eq!(raw.chars().count(), code.chars().count());
        }
    }

    #[test]
    fn words_have_borders() {
        assert_eq!(find_word("unsafe_code unsafe {", "unsafe"), Some(12));
        assert_eq!(find_word("is_unsafe", "unsafe"), None);
    }
}
