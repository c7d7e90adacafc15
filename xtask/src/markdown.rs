//! The parts of Markdown that the checks need: links, anchors of headings, and text without code.

use std::collections::{BTreeMap, BTreeSet};

/// One link of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The line, counted from 1.
    pub line: usize,
    /// The line up to the link.
    pub before: String,
    /// The visible text, as written: `` [`Store`](store.rs) `` has the text `` `Store` ``.
    pub text: String,
    /// The target, without the title.
    pub target: String,
}

/// The lines outside fenced code blocks, each with its number.
pub fn outside_fences<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> impl Iterator<Item = (usize, &'a str)> {
    let mut open: Option<&str> = None;
    lines.filter(move |(_, line)| {
        let line = line.trim();
        match open {
            Some(fence) if line.starts_with(fence) => open = None,
            Some(_) => {}
            None => match ["```", "~~~"].into_iter().find(|fence| line.starts_with(fence)) {
                Some(fence) => open = Some(fence),
                None => return true,
            },
        }
        false
    })
}

/// The links of a document: inline links, images, and definitions of reference links.
pub fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (line, raw) in outside_fences(numbered(text)) {
        let masked = mask_code(raw);
        for (middle, _) in masked.match_indices("](") {
            let Some(start) = opening_bracket(&masked[..middle]) else { continue };
            let Some(target) = target_at(&raw[middle + 2..]) else { continue };
            found.push(Link {
                line,
                before: raw[..start].to_owned(),
                text: raw[start + 1..middle].to_owned(),
                target: target.to_owned(),
            });
        }
        if let Some((label, target)) = definition(raw) {
            found.push(Link { line, before: String::new(), text: label.to_owned(), target: target.to_owned() });
        }
    }
    found
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// The position of the bracket that opens a link's text; `before` ends where the text ends.
fn opening_bracket(before: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, c) in before.char_indices().rev() {
        match c {
            ']' => depth += 1,
            '[' if depth == 0 => return Some(at),
            '[' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The target of a link; `rest` begins after the opening parenthesis.
fn target_at(rest: &str) -> Option<&str> {
    let mut depth = 0_u32;
    let end = rest.char_indices().find_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
        None
    })?;
    Some(bare_target(&rest[..end]))
}

fn bare_target(target: &str) -> &str {
    target.split_whitespace().next().unwrap_or_default().trim_start_matches('<').trim_end_matches('>')
}

/// `[label]: target`; `[^label]: text` is a footnote.
fn definition(line: &str) -> Option<(&str, &str)> {
    let (label, target) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    let is_link = !label.starts_with('^') && !label.contains(']') && !target.trim().is_empty();
    is_link.then(|| (label, bare_target(target)))
}

/// The anchors that GitHub gives the headings of a document: `## Group commit` has `group-commit`, and a second one
/// `group-commit-1`.
pub fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for (_, line) in outside_fences(numbered(text)) {
        let Some(heading) = heading(line) else { continue };
        let anchor = anchor(heading);
        let num_before = counts.entry(anchor.clone()).or_default();
        anchors.insert(if *num_before == 0 { anchor } else { format!("{anchor}-{num_before}") });
        *num_before += 1;
    }
    anchors
}

/// The text of a heading such as `## Text`.
pub fn heading(line: &str) -> Option<&str> {
    let line = line.trim();
    let text = line.trim_start_matches('#');
    let depth = line.len() - text.len();
    ((1..=6).contains(&depth) && text.starts_with(' ')).then(|| text.trim_end_matches('#').trim())
}

/// GitHub keeps letters, digits, hyphens and underscores of the rendered heading, in lower case.
fn anchor(heading: &str) -> String {
    let mut rendered = heading.to_owned();
    let masked = mask_code(heading);
    for (middle, _) in masked.match_indices("](").collect::<Vec<_>>().into_iter().rev() {
        if let Some(length) = masked[middle..].find(')') {
            rendered.replace_range(middle..=middle + length, "");
        }
    }
    let kept = rendered.chars().filter(|&c| c.is_alphanumeric() || " -_".contains(c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The text with an `x` for every byte inside a code span, so that positions stay. A span without its end is text.
pub fn mask_code(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let fence = &rest[start..rest.len() - rest[start..].trim_start_matches('`').len()];
        let inside = &rest[start + fence.len()..];
        masked.push_str(&rest[..start + fence.len()]);
        rest = inside;
        if let Some(length) = closing_fence(inside, fence.len()) {
            masked.extend(std::iter::repeat_n('x', length));
            masked.push_str(&inside[length..length + fence.len()]);
            rest = &inside[length + fence.len()..];
        }
    }
    masked + rest
}

/// The position of the next run of exactly `num_ticks` grave accents.
fn closing_fence(text: &str, num_ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(start) = text[at..].find('`').map(|found| at + found) {
        at = text.len() - text[start..].trim_start_matches('`').len();
        if at - start == num_ticks {
            return Some(start);
        }
    }
    None
}

/// [`mask_code`], and an `x` for every byte of a link's target.
pub fn mask_code_and_targets(text: &str) -> String {
    let mut masked = mask_code(text);
    for (middle, _) in masked.clone().match_indices("](") {
        if let Some(length) = masked[middle..].find(')') {
            masked.replace_range(middle + 2..middle + length, &"x".repeat(length - 2));
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<(usize, String)> {
        links(text).into_iter().map(|link| (link.line, link.target)).collect()
    }

    #[test]
    fn links_of_every_form_are_found() {
        let text = "[a](b.md) and [`c[0]`](<d.md> \"title\")\n![i](e.png)\n[![i](f.png)](g_(h).md)\n[j]: k.md\n";
        let expected = [(1, "b.md"), (1, "d.md"), (2, "e.png"), (3, "f.png"), (3, "g_(h).md"), (4, "k.md")].map(owned);
        assert_eq!(targets(text), expected);
    }

    fn owned((line, target): (usize, &str)) -> (usize, String) {
        (line, target.to_owned())
    }

    #[test]
    fn code_holds_no_links() {
        let text = "`[a](b)` ``[c](`d`)`` f(x)[1](e\n```\n[f](g)\n```\n[h](i) ` [j](k)\n[^1]: note\n";
        assert_eq!(targets(text), [(5, "i"), (5, "k")].map(owned));
    }

    #[test]
    fn link_keeps_its_text_and_the_line_before() {
        let link = &links("See `f` in [`a` b](c.rs).")[0];
        assert_eq!((link.before.as_str(), link.text.as_str()), ("See `f` in ", "`a` b"));
    }

    #[test]
    fn anchors_follow_the_rule_of_github() {
        let text = "# A `b_c`: [D, *e*](f#g)!\n## Two\n### Two ##\n```\n# no\n```\n#no\n####### no\n# É — 1/2\n";
        let expected = ["a-b_c-d-e", "two", "two-1", "é--12"];
        assert_eq!(anchors(text), expected.map(str::to_owned).into());
    }

    #[test]
    fn masks_keep_positions() {
        assert_eq!(mask_code("a `bé` ``c`d`` `e"), "a `xxx` ``xxx`` `e");
        assert_eq!(mask_code_and_targets("[`a`](b.md#c) d"), "[`x`](xxxxxx) d");
    }
}
