//! A Rust file split into code and comments, so that a rule checks one of them.
//!
//! A full parser would know more but cost a dependency on many crates. The rules need only the split.

/// The lines of a file, three times: as written, as code, and as comments.
#[derive(Debug)]
pub struct Source {
    /// As written.
    pub raw: Vec<String>,
    /// The code: equal lines and columns, with a space for every character of a comment or inside a literal.
    pub code: Vec<String>,
    /// The comments: equal lines and columns, with a space for every character outside a comment.
    pub comments: Vec<String>,
}

impl Source {
    /// Splits `text` into code and comments.
    pub fn new(text: &str) -> Self {
        let output = || String::with_capacity(text.len());
        let mut scanner = Scanner { rest: text.chars().collect(), at: 0, code: output(), comments: output() };
        scanner.run();
        let lines = |text: &str| text.lines().map(str::to_owned).collect();
        Self { raw: lines(text), code: lines(&scanner.code), comments: lines(&scanner.comments) }
    }

    /// The lines before the test module at the end of the file.
    pub fn code_before_tests(&self) -> &[String] {
        let end = self.code.iter().position(|line| line.starts_with("mod tests"));
        &self.code[..end.unwrap_or(self.code.len())]
    }
}

struct Scanner {
    rest: Vec<char>,
    at: usize,
    code: String,
    comments: String,
}

impl Scanner {
    fn run(&mut self) {
        while let Some(c) = self.peek(0) {
            match c {
                '/' if self.peek(1) == Some('/') => self.line_comment(),
                '/' if self.peek(1) == Some('*') => self.block_comment(),
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
        self.comments.push(blank_of(c));
        self.at += 1;
    }

    fn blank(&mut self) {
        if let Some(c) = self.peek(0) {
            self.code.push(blank_of(c));
            self.comments.push(blank_of(c));
            self.at += 1;
        }
    }

    fn comment(&mut self) {
        if let Some(c) = self.peek(0) {
            self.code.push(blank_of(c));
            self.comments.push(c);
            self.at += 1;
        }
    }

    fn blank_while(&mut self, inside: impl Fn(char) -> bool) {
        while self.peek(0).is_some_and(&inside) {
            self.blank();
        }
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.comment();
        }
    }

    /// Block comments nest.
    fn block_comment(&mut self) {
        let mut depth = 0_u32;
        while let Some(c) = self.peek(0) {
            let pair = (c, self.peek(1));
            if pair == ('/', Some('*')) || pair == ('*', Some('/')) {
                depth = if c == '/' { depth + 1 } else { depth - 1 };
                self.comment();
            }
            self.comment();
            if depth == 0 {
                return;
            }
        }
    }

    /// Blanks a string. The quotes stay, so that a line with a string is not taken for one without code.
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

    /// Blanks a raw string, from its opening quote to the quote followed by `hashes` hashes.
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

/// Lines and columns stay.
fn blank_of(c: char) -> char {
    if c == '\n' { '\n' } else { ' ' }
}

/// The position of `word` in `text` as a whole word, without a letter, digit or underscore on either side.
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
    fn comments_keep_their_place() {
        let comments = |text| Source::new(text).comments.join("\n");
        assert_eq!(comments("a(\"// b\") // c\n/* d\ne */ f"), "          // c\n/* d\ne */  ");
    }

    #[test]
    fn test_module_ends_the_code() {
        let source = Source::new("fn a() {}\n// mod tests\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n");
        assert_eq!(source.code_before_tests().len(), 3);
        assert_eq!(Source::new("fn a() {}\n").code_before_tests().len(), 1);
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
