//! Files of LDBC's social network, whose names and columns tell labels, types and key spaces.
//!
//! | name | columns | rows |
//! | --- | --- | --- |
//! | `person_0_0.csv`, `Person/part-0.csv` | `id`, … | vertices |
//! | `Person.parquet`, beside a file of edges below | `id`, … | vertices |
//! | `person_likes_post_0_0.csv` | `Person.id`, `Post.id`, … | edges of type `likes` |
//! | `Person_likes_Post.parquet`, `Person_likes_Post/part-0.csv` | `PersonId`, `PostId`, … | edges of type `likes` |
//! | `person_speaks_language_0_0.csv` | `Person.id`, `language` | edges to values |
//!
//! # Source
//! <https://github.com/ldbc/ldbc_snb_datagen_spark>

use std::path::Path;

use crate::compression::Compression;
use crate::labeled::{Said, Spaces};

/// The kinds of vertices, and the kind whose keys they share. Names of files may have them in lower case.
const KINDS: [(&str, &str); 12] = [
    ("Comment", "Comment"),
    ("Forum", "Forum"),
    ("Organisation", "Organisation"),
    ("Company", "Organisation"),
    ("University", "Organisation"),
    ("Person", "Person"),
    ("Place", "Place"),
    ("City", "Place"),
    ("Country", "Place"),
    ("Post", "Post"),
    ("Tag", "Tag"),
    ("TagClass", "TagClass"),
];

/// The columns of keys in a file, and the facts that apply to all its rows.
#[derive(Clone, Debug)]
pub(crate) struct LdbcTable {
    /// The column of sources, or of the keys of vertices.
    pub(crate) source: usize,
    /// `None` in a file of vertices.
    pub(crate) target: Option<usize>,
    pub(crate) said: Said,
}

impl LdbcTable {
    /// Whether the name of a file is that of edges between two kinds.
    pub(crate) fn is_of_relation(path: &Path) -> bool {
        LdbcName::of(path).is_some_and(|name| name.relation.is_some() && name.has_known_kinds())
    }

    /// The table with these columns in a file of this name; `None` for other files. `has_relations`: other files of the
    /// load are of edges between two kinds, so that a file named as a kind is one of vertices.
    pub(crate) fn of(fields: &[&str], path: &Path, has_relations: bool) -> Option<Self> {
        let name = LdbcName::of(path);
        let edge_type = name.as_ref().and_then(|name| name.relation.as_ref()).map(|(edge_type, _)| edge_type.clone());
        let edges = |source, target, spaces: [&str; 2]| {
            let [first, second] = spaces.map(|kind| Some(space_of(kind)));
            Self {
                source,
                target: Some(target),
                said: Said { edge_type: edge_type.clone(), labels: None, spaces: Spaces::new(first, second) },
            }
        };
        // `Person.id` and the like tell the kinds themselves.
        let kinds: Vec<(usize, &str)> =
            fields.iter().enumerate().filter_map(|(place, field)| Some((place, kind_of(field)?))).collect();
        match (&kinds[..], &name) {
            (&[(source, first), (target, second)], _) => Some(edges(source, target, [first, second])),
            // A person has several languages, each in a row.
            (&[(0, kind)], Some(LdbcName { relation: Some((_, values)), .. })) if fields.len() == 2 => {
                Some(edges(0, 1, [kind, values]))
            }
            ([], Some(name @ LdbcName { kind, relation: Some((_, other)), .. })) if name.has_known_kinds() => {
                let is_end = |field: &str, kind: &str| {
                    let word = field.strip_suffix("Id").unwrap_or_default();
                    // The ends of an edge between persons are `Person1Id` and `Person2Id`.
                    word.trim_end_matches(['1', '2']).eq_ignore_ascii_case(kind)
                };
                let source = fields.iter().position(|field| is_end(field, kind))?;
                let mut targets = (0..fields.len()).filter(|&place| place != source && is_end(fields[place], other));
                Some(edges(source, targets.next()?, [kind, other]))
            }
            ([], Some(LdbcName { kind, relation: None, is_sure })) if *is_sure || has_relations => {
                let known = known_kind(kind).map(|(known, _)| *known);
                let label = known.or(is_sure.then_some(&kind[..]))?.to_owned();
                let source = fields.iter().position(|field| *field == "id")?;
                let space = Some(space_of(kind));
                let said = Said { edge_type: None, labels: Some(label), spaces: Spaces::new(space.clone(), space) };
                Some(Self { source, target: None, said })
            }
            _ => None,
        }
    }
}

/// The kind in the name of a column such as `Person.id`.
fn kind_of(field: &str) -> Option<&str> {
    let kind = field.strip_suffix(".id").filter(|kind| !kind.is_empty())?;
    kind.chars().all(char::is_alphanumeric).then_some(kind)
}

fn known_kind(word: &str) -> Option<&'static (&'static str, &'static str)> {
    KINDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word))
}

/// The key space of a kind.
fn space_of(kind: &str) -> String {
    known_kind(kind).map_or(kind, |(_, space)| space).to_owned()
}

/// The parts of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LdbcName {
    /// The kind of the vertices, or of the sources, as it stands.
    kind: String,
    /// The type of the edges, and the kind of the targets.
    relation: Option<(String, String)>,
    /// Whether the form of the name is LDBC's: two numbers follow, or the file is a part in a folder.
    is_sure: bool,
}

impl LdbcName {
    fn of(path: &Path) -> Option<Self> {
        let stem = Compression::of_name(path).1.file_stem()?.to_str()?;
        // The parts of a table lie in a folder of its name.
        let is_part = stem.starts_with("part-");
        let stem = if is_part { path.parent()?.file_name()?.to_str()? } else { stem };
        let mut words: Vec<&str> = stem.split('_').collect();
        let is_number = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let is_numbered = words.len() > 2 && words[words.len() - 2..].iter().all(is_number);
        if is_numbered {
            words.truncate(words.len() - 2);
        }
        let relation = match *words {
            [_] => None,
            [_, edge_type, target] if !edge_type.is_empty() => Some((edge_type.to_owned(), target.to_owned())),
            _ => return None,
        };
        Some(Self { kind: words[0].to_owned(), relation, is_sure: is_numbered || is_part })
    }

    fn has_known_kinds(&self) -> bool {
        let other = self.relation.as_ref().map_or(&self.kind, |(_, other)| other);
        known_kind(&self.kind).is_some() && known_kind(other).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of the keys, and what the file says.
    fn shown(fields: &str, path: &str) -> Option<String> {
        let fields: Vec<&str> = fields.split('|').collect();
        let has_relations = path.starts_with("uni");
        let LdbcTable { source, target, said } = LdbcTable::of(&fields, path.as_ref(), has_relations)?;
        let target = target.map_or("-".to_owned(), |target| target.to_string());
        let spaces: Vec<&str> = said.spaces.names().collect();
        let name = said.edge_type.or(said.labels).unwrap_or_default();
        Some(format!("{source} {target} {name} {}", spaces.join(" ")))
    }

    #[test]
    fn names_and_columns_tell_kinds_and_types() {
        for (fields, path, expected) in [
            ("Person.id|Person.id|creationDate", "a/person_knows_person_0_0.csv.gz", "0 1 knows Person Person"),
            ("Person.id|Post.id", "x.csv", "0 1  Person Post"),
            ("Person.id|email", "person_email_emailaddress_0_0.csv", "0 1 email Person emailaddress"),
            ("id|name|url", "tagclass_0_0.csv", "0 - TagClass TagClass TagClass"),
            ("creationDate|id|x", "Person/part-00000.csv", "1 - Person Person Person"),
            ("id|name", "university.parquet", "0 - University Organisation Organisation"),
            ("creationDate|Person1Id|Person2Id", "Person_knows_Person.parquet", "1 2 knows Person Person"),
            ("at|CompanyId|PersonId", "Person_workAt_Company/part-1.csv", "2 1 workAt Person Organisation"),
            ("id|x", "robot_0_1.csv", "0 - robot robot robot"),
        ] {
            assert_eq!(shown(fields, path).as_deref(), Some(expected), "{fields} {path}");
        }
        for (fields, path) in [
            ("id|name", "robot.csv"),
            ("id|name", "person.parquet"),
            ("Robot1Id|Robot2Id", "robot_knows_robot.csv"),
            ("name|x", "place_0_0.csv"),
            ("Person.id|email", "x.csv"),
            ("a|b", "person_knows_person.csv"),
            ("PersonId|x", "person_likes_post.csv"),
        ] {
            assert_eq!(shown(fields, path), None, "{fields} {path}");
        }
    }
}
