//! Headers that state the roles of columns, the labels and the key spaces.
//!
//! | header | rows |
//! | --- | --- |
//! | `personId:ID(Person),name:string,:LABEL` | vertices, as `neo4j-admin import` takes them |
//! | `:START_ID(Person),:END_ID(Post),:TYPE,since:int` | edges, likewise |
//! | `~id,~label,name:String` | vertices, as the bulk loader of Neptune takes them |
//! | `~id,~from,~to,~label,weight:Double` | edges, likewise |
//! | as in [`ldbc`](super::ldbc), with `\|` between the columns | vertices or edges of LDBC's social network |
//!
//! Arrays such as `tags:string[]` are lists.

use std::path::Path;

use anden_graph::property::PropertyType;

use super::head::name_and_type;
use super::ldbc::LdbcTable;
use crate::array_text::ArrayForm;
use crate::epoch::StatedType;
use crate::labeled::{Said, Spaces};
use crate::options::{EDGE_NAME_PROPERTY, LABELS_PROPERTY, TYPE_PROPERTY};

/// The role of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ColumnRole {
    /// The keys of sources, or of the vertices.
    Source,
    Target,
    /// A property, with the type that the header states.
    Property(String, Option<StatedType>),
    /// The header says that the column is not read.
    Ignored,
    /// The lasting names of edges, beside the numbers that Anden gives them.
    EdgeNames,
}

/// A header that states the roles of its columns.
#[derive(Clone, Debug)]
pub(crate) struct RoleHeader {
    roles: Vec<ColumnRole>,
    /// The type, the labels and the key spaces of all rows.
    pub(crate) said: Said,
}

impl RoleHeader {
    /// The roles of the fields of a header; `None` if they state none. `path` is the name of the input.
    ///
    /// # Errors
    /// Several columns have one role.
    pub(crate) fn of(fields: &[String], delimiter: u8, path: &Path) -> Result<Option<Self>, String> {
        let fields: Vec<&str> = fields.iter().map(|field| field.trim()).collect();
        let marked: Vec<MarkedField<'_>> = fields.iter().map(|field| MarkedField::new(field)).collect();
        let has_mark = |mark: &str| marked.iter().any(|field| field.mark == mark);
        let has = |name: &str| fields.contains(&name);
        let found = if has_mark("START_ID") && has_mark("END_ID") {
            Self::of_neo4j_edges(&marked)
        } else if has_mark("ID") && !has_mark("START_ID") && !has_mark("END_ID") {
            Self::of_neo4j_vertices(&marked)
        } else if has("~from") && has("~to") {
            Self::of_neptune_edges(&marked)
        } else if has("~id") && !has("~from") && !has("~to") {
            Self::of_neptune_vertices(&marked)
        } else if delimiter == b'|' {
            return Ok(LdbcTable::of(&fields, path, false).map(|table| Self::of_ldbc(&fields, table)));
        } else {
            return Ok(None);
        };
        let duplicate = |role| found.roles.iter().filter(|found| **found == role).count() > 1;
        match duplicate(ColumnRole::Source) || duplicate(ColumnRole::Target) {
            true => Err(format!("expected one column for each key, found several in the header {}", fields.join(","))),
            false => Ok(Some(found)),
        }
    }

    fn of_neo4j_vertices(fields: &[MarkedField<'_>]) -> Self {
        let key = fields.iter().find(|field| field.mark == "ID");
        let space = key.and_then(MarkedField::space);
        // An option of the key may give all vertices a label: `:ID(Person){label:Person}`.
        let labels = key.and_then(|key| key.option("label"));
        let roles = fields.iter().map(|field| match field.mark {
            "ID" => ColumnRole::Source,
            "LABEL" => ColumnRole::Property(LABELS_PROPERTY.to_owned(), Some(PropertyType::String.into())),
            "IGNORE" => ColumnRole::Ignored,
            _ => field.property(Dialect::Neo4j),
        });
        let said = Said { edge_type: None, labels, spaces: Spaces::new(space.clone(), space) };
        Self { roles: roles.collect(), said }
    }

    fn of_neo4j_edges(fields: &[MarkedField<'_>]) -> Self {
        let space = |mark: &str| fields.iter().find(|field| field.mark == mark).and_then(MarkedField::space);
        let roles = fields.iter().map(|field| match field.mark {
            "START_ID" => ColumnRole::Source,
            "END_ID" => ColumnRole::Target,
            "TYPE" => ColumnRole::Property(TYPE_PROPERTY.to_owned(), Some(PropertyType::String.into())),
            "IGNORE" => ColumnRole::Ignored,
            _ => field.property(Dialect::Neo4j),
        });
        let spaces = Spaces::new(space("START_ID"), space("END_ID"));
        Self { roles: roles.collect(), said: Said { spaces, ..Said::default() } }
    }

    fn of_neptune_vertices(fields: &[MarkedField<'_>]) -> Self {
        let roles = fields.iter().map(|field| match field.whole {
            "~id" => ColumnRole::Source,
            "~label" => ColumnRole::Property(LABELS_PROPERTY.to_owned(), Some(PropertyType::String.into())),
            _ => field.property(Dialect::Neptune),
        });
        Self { roles: roles.collect(), said: Said::default() }
    }

    fn of_neptune_edges(fields: &[MarkedField<'_>]) -> Self {
        let roles = fields.iter().map(|field| match field.whole {
            "~id" => ColumnRole::EdgeNames,
            "~from" => ColumnRole::Source,
            "~to" => ColumnRole::Target,
            "~label" => ColumnRole::Property(TYPE_PROPERTY.to_owned(), Some(PropertyType::String.into())),
            _ => field.property(Dialect::Neptune),
        });
        Self { roles: roles.collect(), said: Said::default() }
    }

    /// The roles in a file of LDBC's social network.
    fn of_ldbc(fields: &[&str], table: LdbcTable) -> Self {
        let roles = fields.iter().enumerate().map(|(place, field)| match place {
            _ if place == table.source => ColumnRole::Source,
            _ if Some(place) == table.target => ColumnRole::Target,
            _ => {
                let (name, stated) = name_and_type(field);
                ColumnRole::Property(name.to_owned(), stated)
            }
        });
        Self { roles: roles.collect(), said: table.said }
    }

    /// The column of sources, or of the keys of vertices.
    pub(crate) fn source(&self) -> usize {
        self.roles.iter().position(|role| *role == ColumnRole::Source).unwrap_or(0)
    }

    /// The column of targets; `None` in a file of vertices.
    pub(crate) fn target(&self) -> Option<usize> {
        self.roles.iter().position(|role| *role == ColumnRole::Target)
    }

    /// The name of the property in a column, and the type that the header states.
    pub(crate) fn property(&self, place: usize) -> Option<(&str, Option<StatedType>)> {
        match self.roles.get(place)? {
            ColumnRole::Property(name, stated) => Some((name, *stated)),
            ColumnRole::EdgeNames => Some((EDGE_NAME_PROPERTY, Some(PropertyType::String.into()))),
            _ => None,
        }
    }

    /// Whether a column has the names of edges.
    pub(crate) fn is_of_edge_names(&self, place: usize) -> bool {
        self.roles.get(place) == Some(&ColumnRole::EdgeNames)
    }

    /// Whether the header says that a column is not read.
    pub(crate) fn is_ignored(&self, place: usize) -> bool {
        self.roles.get(place) == Some(&ColumnRole::Ignored)
    }
}

/// The loaders with types of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Neo4j,
    Neptune,
}

/// A field of a header and its parts: `NAME:MARK(GROUP){OPTIONS}`.
#[derive(Clone, Copy, Debug, Default)]
struct MarkedField<'a> {
    whole: &'a str,
    name: &'a str,
    /// Empty without a colon.
    mark: &'a str,
    group: &'a str,
    options: &'a str,
}

impl<'a> MarkedField<'a> {
    fn new(whole: &'a str) -> Self {
        let (rest, options) = without_end(whole, '{', '}');
        let (rest, group) = without_end(rest, '(', ')');
        match rest.rsplit_once(':') {
            Some((name, mark)) => Self { whole, name: name.trim(), mark: mark.trim(), group, options },
            None => Self { whole, name: whole, ..Self::default() },
        }
    }

    /// The key space.
    fn space(&self) -> Option<String> {
        Some(self.group.trim()).filter(|space| !space.is_empty()).map(str::to_owned)
    }

    /// The value of an option in braces.
    fn option(&self, name: &str) -> Option<String> {
        let options = self.options.split(',').filter_map(|option| option.split_once(':'));
        let mut values = options.filter(|(known, _)| known.trim() == name).map(|(_, value)| value.trim());
        values.next().filter(|value| !value.is_empty()).map(str::to_owned)
    }

    fn property(&self, dialect: Dialect) -> ColumnRole {
        let (kind, is_array) = self.mark.strip_suffix("[]").map_or((self.mark, false), |kind| (kind, true));
        let kind = kind.to_ascii_lowercase();
        let stated: Option<StatedType> = match (&kind[..], dialect) {
            // The dates of Neptune may have a time, also further on than the first rows.
            ("date" | "datetime", Dialect::Neptune) => Some(PropertyType::Timestamp.into()),
            // A zone of the header would change the times, and only the text keeps them.
            ("datetime", Dialect::Neo4j) if !self.options.is_empty() => Some(PropertyType::String.into()),
            ("byte" | "short", _) => Some(PropertyType::I64.into()),
            ("localdatetime", _) => Some(PropertyType::Timestamp.into()),
            ("char" | "point" | "time" | "localtime" | "duration", _) => Some(PropertyType::String.into()),
            _ => match StatedType::of_name(&kind) {
                Some(known) => Some(known),
                // The colon is part of the name.
                None => return ColumnRole::Property(self.whole.to_owned(), None),
            },
        };
        let array = |stated: StatedType| match stated.of_input().list()? {
            PropertyType::List(item_type) => {
                Some(StatedType::Array(ArrayForm { item_type, is_escaped: dialect == Dialect::Neptune }))
            }
            _ => None,
        };
        let stated = match is_array {
            // Other items have no type in lists.
            true => stated.and_then(array).or(Some(PropertyType::String.into())),
            false => stated,
        };
        ColumnRole::Property(self.name.to_owned(), stated)
    }
}

/// A text without its last part in brackets, and that part.
fn without_end(text: &str, open: char, close: char) -> (&str, &str) {
    text.strip_suffix(close).and_then(|text| text.rsplit_once(open)).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str, path: &str) -> Option<RoleHeader> {
        let delimiter = if text.contains('|') { b'|' } else { b',' };
        let fields: Vec<String> = text.split(char::from(delimiter)).map(str::to_owned).collect();
        RoleHeader::of(&fields, delimiter, path.as_ref()).unwrap()
    }

    /// The places of source and target, and the properties with their types.
    fn shown(text: &str, path: &str) -> String {
        let found = header(text, path).unwrap();
        let properties = (0..found.roles.len()).filter_map(|place| found.property(place)).map(|(name, stated)| {
            let stated = stated.map_or("?", |stated| stated.of_input().name());
            format!("{name}:{stated}")
        });
        let target = found.target().map_or("-".to_owned(), |target| target.to_string());
        format!("{} {target} {}", found.source(), properties.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn bulk_headers_state_roles_and_types() {
        for (text, expected) in [
            (
                "personId:ID(Person),name,age:int,:LABEL,tags:string[],x:IGNORE",
                "0 - name:? age:i64 labels:string tags:string[]",
            ),
            (":START_ID,:END_ID,:TYPE,since:date,at:datetime", "0 1 type:string since:date at:timestamp"),
            (":ID,x:long[],y:byte[],z:bytes[],p:point[]", "0 - x:i64[] y:i64[] z:string p:string[]"),
            (":TYPE,b:END_ID(B),a:START_ID(A),w:double", "2 1 type:string w:f64"),
            ("x:long,y:byte,:ID,p:point{crs:WGS-84},t:datetime{timezone:+02:00}", "2 - x:i64 y:i64 p:string t:string"),
            (
                "~id,~label,name:String(single),n:Int,tags:String[],since:Date",
                "0 - labels:string name:string n:i64 tags:string[] since:timestamp",
            ),
            ("~id,~from,~to,~label,w:Double,a:b", "1 2 ~id:string type:string w:f64 a:b:?"),
        ] {
            assert_eq!(shown(text, "x.csv"), expected, "{text}");
        }
        for text in ["source,target", "a:START_ID,b", "id,name", "~from,b", "a:id,b"] {
            assert!(header(text, "x.csv").is_none(), "{text}");
        }
        let fields = ["a:ID", "b:ID"].map(str::to_owned);
        assert!(
            RoleHeader::of(&fields, b',', "x.csv".as_ref()).unwrap_err().contains("expected one column for each key")
        );
    }
}
