//! Finds the columns of sources, targets and weights of edges, or of vertex keys.
//!
//! One rule serves CSV, blank-separated text and Parquet:
//!
//! 1. A column that an option names has its role.
//! 2. Otherwise names decide: a pair such as `source`, `target` or `from`, `to`. Case, blanks and separators do not
//!    count, so `From Node Id`, `from_node_id` and `FromNodeId` are one name.
//! 3. Otherwise the table must have two named columns, or three of which one is known as the weight.
//! 4. Anything else is an error that lists the columns and the options. Positions never decide among more columns: a
//!    guess such as `edge_id → from` would load silently.
//!
//! A column without a name, such as the index that pandas writes, is never a key.

use anden_base::message::{list_of, shown};

use crate::options::SourceOptions;

/// Pairs of names of sources and targets.
///
/// Names of different pairs also match (`source`, `dest`), if the table has one source and one target.
const PAIRS: [(&str, &str); 28] = [
    ("source", "target"),
    ("src", "dst"),
    ("source", "destination"),
    ("src", "dest"),
    ("origin", "destination"),
    ("origin", "dest"),
    ("from", "to"),
    ("fromid", "toid"),
    ("fromnode", "tonode"),
    ("fromnodeid", "tonodeid"),
    ("fromvertex", "tovertex"),
    ("sourceid", "targetid"),
    ("srcid", "dstid"),
    ("srcid", "destid"),
    ("originid", "destinationid"),
    ("originid", "destid"),
    ("sourcenode", "targetnode"),
    ("sourcenodeid", "targetnodeid"),
    ("sourcevertex", "targetvertex"),
    ("srcnode", "dstnode"),
    ("startid", "endid"),
    ("startnode", "endnode"),
    ("startnodeid", "endnodeid"),
    ("node1", "node2"),
    ("nodeid1", "nodeid2"),
    ("vertex1", "vertex2"),
    // LDBC's social network, and STRING's protein interactions.
    ("person1id", "person2id"),
    ("protein1", "protein2"),
];
/// Pairs of names that often mean other things: `from,to,start,end` is an edge with a time interval.
const WEAK_PAIRS: [(&str, &str); 4] = [("u", "v"), ("start", "end"), ("head", "tail"), ("id1", "id2")];
/// Names of weights.
pub(crate) const WEIGHT_NAMES: [&str; 4] = ["weight", "w", "cost", "distance"];
/// Names of vertex keys, the most likely first.
const VERTEX_NAMES: [&str; 8] = ["id", "key", "name", "vertex", "node", "label", "vertexid", "nodeid"];

/// Normalizes a name for comparison.
///
/// Removes the marks of Neo4j (`name:START_ID(Person)`), Neptune (`~from`) and ArangoDB (`_from`).
fn folded(name: &str) -> String {
    let name = name.find('(').filter(|_| name.ends_with(')')).map_or(name, |start| &name[..start]);
    let mark = name.rsplit_once(':').map(|(_, mark)| mark);
    let mark = mark.filter(|mark| ["ID", "START_ID", "END_ID"].contains(mark));
    mark.unwrap_or(name).chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether a column has no name. Pandas writes such a column as `Unnamed: 0`.
pub(crate) fn is_unnamed(name: &str) -> bool {
    let is_numbered = |rest: &str| rest.starts_with(':') && rest[1..].trim().bytes().all(|byte| byte.is_ascii_digit());
    name.trim().is_empty() || name.strip_prefix("Unnamed").is_some_and(is_numbered)
}

/// The positions of the columns of edges that are not properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EdgeRoles {
    pub(crate) source: usize,
    pub(crate) target: usize,
    pub(crate) weight: Option<usize>,
}

/// A source and a target column that their names identify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownEnds {
    pub(crate) source: usize,
    pub(crate) target: usize,
    /// Whether the names often mean other things.
    pub(crate) is_weak: bool,
}

/// The end of an edge that a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndpointRole {
    Source,
    Target,
}

impl EndpointRole {
    /// Whether one of the pairs has this name for this end.
    fn has(self, name: &str, pairs: &[(&str, &str)]) -> bool {
        pairs.iter().any(|&(source, target)| name == if self == Self::Source { source } else { target })
    }
}

/// The names of the columns of a table, in order.
#[derive(Clone, Debug)]
pub(crate) struct TableColumnNames {
    names: Vec<String>,
    folded: Vec<String>,
}

impl TableColumnNames {
    /// Takes names without the types that they may carry.
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<String> = names.into_iter().map(|name| name.trim().to_owned()).collect();
        // An unnamed column must not match any known name.
        let folded = names.iter().map(|name| if is_unnamed(name) { String::new() } else { folded(name) }).collect();
        Self { names, folded }
    }

    /// The quoted names, for messages.
    pub(crate) fn list(&self) -> String {
        list_of(self.names.iter().map(|name| shown(name.as_bytes())))
    }

    /// The positions of columns with a name.
    fn named(&self) -> Vec<usize> {
        (0..self.names.len()).filter(|&place| !is_unnamed(&self.names[place])).collect()
    }

    fn places_of(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<usize> {
        (0..self.folded.len()).filter(|&place| is_wanted(&self.folded[place])).collect()
    }

    /// The column that an option names: an exact match, or else one that ignores case and separators.
    ///
    /// # Errors
    /// No column matches, or several do.
    pub(crate) fn asked(&self, option: &str, wanted: Option<&str>) -> Result<Option<usize>, String> {
        let Some(wanted) = wanted else { return Ok(None) };
        // An exact match wins, so that names that differ only in case stay apart.
        let exact: Vec<usize> = (0..self.names.len()).filter(|&place| self.names[place] == wanted.trim()).collect();
        let key = folded(wanted);
        let found = match exact.is_empty() {
            true => self.places_of(|name| !name.is_empty() && name == key),
            false => exact,
        };
        let shown = shown(wanted.as_bytes());
        match found[..] {
            [place] => Ok(Some(place)),
            [] => Err(format!("cannot find the column {shown} of {option}: the columns are {}", self.list())),
            _ => Err(format!(
                "cannot tell the column {shown} of {option}: {} columns have this name among {}; --header first and \
                 --columns give other names",
                found.len(),
                self.list()
            )),
        }
    }

    /// The source and target that the names identify.
    ///
    /// # Errors
    /// The names match several columns.
    pub(crate) fn known_ends(&self) -> Result<Option<KnownEnds>, String> {
        // Weak pairs count only if no other pair is found.
        for (pairs, is_weak) in [(&PAIRS[..], false), (&WEAK_PAIRS[..], true)] {
            let sources = self.places_of(|name| EndpointRole::Source.has(name, pairs));
            let targets = self.places_of(|name| EndpointRole::Target.has(name, pairs));
            let mut whole = Vec::new();
            for &source in &sources {
                let is_pair = |target: &&usize| pairs.contains(&(&self.folded[source], &self.folded[**target]));
                whole.extend(targets.iter().filter(is_pair).map(|&target| (source, target)));
            }
            let ends = match (&whole[..], &sources[..], &targets[..]) {
                (&[ends], ..) => Some(ends),
                ([], &[source], &[target]) if !is_weak => Some((source, target)),
                ([], ..) => None,
                _ => return Err(self.cannot_tell_ends("several columns have such names")),
            };
            if let Some((source, target)) = ends {
                return Ok(Some(KnownEnds { source, target, is_weak }));
            }
        }
        Ok(None)
    }

    /// Two columns with the name of one id, as LDBC writes an edge between vertices of one kind:
    /// `Person.id|Person.id|creationDate`. A bare `id` twice may also come from a join of tables.
    fn twins(&self) -> Option<(usize, usize)> {
        let is_id = |place: &usize| self.names[*place].ends_with(".id");
        let has_twin = |place: &usize| self.names.iter().filter(|name| **name == self.names[*place]).count() > 1;
        let twins: Vec<usize> = (0..self.folded.len()).filter(is_id).filter(has_twin).collect();
        match twins[..] {
            [first, second] => Some((first, second)),
            _ => None,
        }
    }

    fn cannot_tell_ends(&self, why: &str) -> String {
        format!(
            "cannot tell which columns are source and target: {why} among {}; --source-column and --target-column name \
             them",
            self.list()
        )
    }

    /// The columns of edges; `can_be_weight` tells which columns hold numbers.
    ///
    /// # Errors
    /// A column that an option names does not exist, or neither options nor names identify the columns.
    pub(crate) fn edge_roles(
        &self,
        options: &SourceOptions,
        can_be_weight: impl Fn(usize) -> bool,
    ) -> Result<EdgeRoles, String> {
        let source = self.asked("--source-column", options.source_column.as_deref())?;
        let target = self.asked("--target-column", options.target_column.as_deref())?;
        // Without weights, the option has no column to check.
        let asked_weight = options.weight_column.as_deref().filter(|_| options.weights.is_some());
        let weight = self.asked("--weight-column", asked_weight)?;
        let (source, target) = match (source, target) {
            (Some(source), Some(target)) => (source, target),
            (Some(source), None) => (source, self.other_end(source, EndpointRole::Target, weight)?),
            (None, Some(target)) => (self.other_end(target, EndpointRole::Source, weight)?, target),
            (None, None) => self.both_ends(weight)?,
        };
        let clash = |place: usize, roles: &str| {
            let name = shown(self.names[place].as_bytes());
            Err(format!("cannot take the column {name} as {roles}: the columns are {}", self.list()))
        };
        if source == target {
            return clash(source, "both source and target");
        }
        let is_free = |place: usize| place != source && place != target;
        let weight = match (options.weights, weight) {
            (None, _) => None,
            (Some(_), Some(weight)) if !is_free(weight) => return clash(weight, "both a key and the weight"),
            (Some(_), Some(weight)) => Some(weight),
            (Some(_), None) => Some(self.weight(|place| is_free(place) && can_be_weight(place))?),
        };
        Ok(EdgeRoles { source, target, weight })
    }

    /// The ends of edges if no option names one.
    fn both_ends(&self, weight: Option<usize>) -> Result<(usize, usize), String> {
        if let Some(KnownEnds { source, target, .. }) = self.known_ends()? {
            return Ok((source, target));
        }
        if let Some(ends) = self.twins() {
            return Ok(ends);
        }
        let pairs = [&PAIRS[..], &WEAK_PAIRS].concat();
        match self.keys_beside(weight)[..] {
            [first, second] => {
                // A known name of one end decides the order of the two columns.
                let is = |place: usize, end: EndpointRole| end.has(&self.folded[place], &pairs);
                let is_turned = is(first, EndpointRole::Target) || is(second, EndpointRole::Source);
                let is_given = is(first, EndpointRole::Source) || is(second, EndpointRole::Target);
                match (is_turned, is_given) {
                    (true, true) => Err(self.cannot_tell_ends("both columns have names of one end")),
                    (true, false) => Ok((second, first)),
                    (false, _) => Ok((first, second)),
                }
            }
            [] | [_] => Err(self.cannot_tell_ends("there are fewer than two")),
            _ => Err(self.cannot_tell_ends("no pair of names is known")),
        }
    }

    /// The end without an option, if an option names the other end.
    fn other_end(&self, taken: usize, end: EndpointRole, weight: Option<usize>) -> Result<usize, String> {
        for pairs in [&PAIRS[..], &WEAK_PAIRS] {
            let mut known = self.places_of(|name| end.has(name, pairs));
            // A column has one role only.
            known.retain(|&place| place != taken && Some(place) != weight);
            if let [place] = known[..] {
                return Ok(place);
            }
        }
        let mut others = self.keys_beside(weight);
        others.retain(|&place| place != taken);
        match others[..] {
            [place] => Ok(place),
            _ => Err(self.cannot_tell_ends("only one of them is named")),
        }
    }

    /// The named columns without the weight, if the weight is known.
    fn keys_beside(&self, weight: Option<usize>) -> Vec<usize> {
        let mut named = self.named();
        let known = self.places_of(|name| WEIGHT_NAMES.contains(&name));
        // With several candidates, none of them is the weight for sure.
        let weight = weight.or(known.first().copied().filter(|_| known.len() == 1));
        named.retain(|&place| Some(place) != weight);
        named
    }

    /// The weight column under a header that states its other roles.
    ///
    /// # Errors
    /// The column that an option names does not exist, or neither the option nor names identify one.
    pub(crate) fn weight_role(&self, options: &SourceOptions) -> Result<usize, String> {
        let asked = self.asked("--weight-column", options.weight_column.as_deref())?;
        asked.map_or_else(|| self.weight(|_| true), Ok)
    }

    /// The weight column if no option names it.
    fn weight(&self, can_be: impl Fn(usize) -> bool) -> Result<usize, String> {
        let likeliest = self.places_of(|name| name == WEIGHT_NAMES[0]);
        let known = self.places_of(|name| WEIGHT_NAMES.contains(&name));
        // The first set with one candidate decides. Several candidates are ambiguous.
        for mut places in [likeliest, known, self.named()] {
            places.retain(|&place| can_be(place));
            match places[..] {
                [place] => return Ok(place),
                [] => {}
                _ => break,
            }
        }
        let list = self.list();
        Err(format!("cannot tell which column is the weight among {list}; --weight-column names it"))
    }

    /// The column that its name identifies as vertex keys.
    pub(crate) fn known_vertex(&self) -> Option<usize> {
        VERTEX_NAMES.iter().find_map(|known| self.folded.iter().position(|name| name == known))
    }

    /// The column of vertex keys.
    ///
    /// # Errors
    /// A column that an option names does not exist, or neither options nor names identify the column.
    pub(crate) fn vertex_role(&self, options: &SourceOptions) -> Result<usize, String> {
        if let Some(place) = self.asked("--vertex-column", options.vertex_column.as_deref())? {
            return Ok(place);
        }
        match (self.known_vertex(), &self.named()[..]) {
            (Some(place), _) | (None, &[place]) => Ok(place),
            _ => Err(format!(
                "cannot tell which column is the key of the vertices among {}; --vertex-column names it",
                self.list()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anden_graph::WeightType;

    fn roles(header: &str, options: &SourceOptions) -> Result<EdgeRoles, String> {
        TableColumnNames::new(header.split(',')).edge_roles(options, |_| true)
    }

    fn ends(header: &str) -> Option<(usize, usize)> {
        roles(header, &SourceOptions::default()).ok().map(|roles| (roles.source, roles.target))
    }

    #[test]
    fn known_pairs_win_anywhere() {
        let pairs = PAIRS.iter().chain(&WEAK_PAIRS);
        for (source, target) in pairs {
            assert_eq!(ends(&format!("edge_id,{target},x,{source}")), Some((3, 1)), "{source} {target}");
            let (source, target) = (source.to_uppercase(), target.to_uppercase());
            assert_eq!(ends(&format!("{source},{target},x,y")), Some((0, 1)), "{source} {target}");
        }
        for header in [
            "from_node,to_node",
            "From Node Id,To Node Id",
            ":START_ID(Person),:END_ID(Person)",
            "a:START_ID,b:END_ID(Post)",
            "~from,~to",
            "_from,_to",
            "node_1,node_2",
            "Person.from,to",
            "source, dest ",
            "src,target",
        ] {
            let wide = format!("kind,{header},since");
            let expected = if header.starts_with("Person") { None } else { Some((1, 2)) };
            assert_eq!(ends(&wide), expected, "{header}");
        }
    }

    #[test]
    fn weak_pairs_yield_to_others() {
        assert_eq!(ends("start,end,to,from"), Some((3, 2)));
        assert_eq!(ends("u,v,source,target"), Some((2, 3)));
        assert_eq!(ends("head,relation,tail"), Some((0, 2)));
        assert_eq!(ends("u,v,start,end"), None, "two weak pairs");
        assert_eq!(ends("from,end,x"), None, "a weak name alone is no pair");
    }

    #[test]
    fn columns_that_names_do_not_tell_are_refused() {
        for header in [
            "a,b,c",
            "source,target,from,to",
            "source,source,target",
            "edge_id,a,b",
            "source,x,y",
            "x",
            ",x",
            "x,weight",
        ] {
            let message = roles(header, &SourceOptions::default()).unwrap_err();
            for part in [
                "cannot tell",
                "--source-column",
                "--target-column",
                &shown(header.split(',').next().unwrap().as_bytes()),
            ] {
                assert!(message.contains(part), "{header}: {message}");
            }
        }
        let wide: Vec<String> = (0..30).map(|i| format!("c{i}")).collect();
        let message = roles(&wide.join(","), &SourceOptions::default()).unwrap_err();
        assert!(message.contains("'c19' and 10 more;"), "{message}");
    }

    #[test]
    fn two_columns_are_source_and_target() {
        assert_eq!(ends("a,b"), Some((0, 1)));
        assert_eq!(ends("a,a"), Some((0, 1)));
        assert_eq!(ends("a,source"), Some((1, 0)));
        assert_eq!(ends("target,a"), Some((1, 0)));
        assert_eq!(ends("a,b,weight"), Some((0, 1)));
        assert_eq!(ends("W,a,b"), Some((1, 2)));
        assert_eq!(ends(",a,b"), Some((1, 2)));
        assert_eq!(ends("Unnamed: 0,a,b"), Some((1, 2)));
        assert_eq!(ends("source,src"), None);
    }

    #[test]
    fn options_win_over_names() {
        let options = |source: Option<&str>, target: Option<&str>, weight: Option<&str>| SourceOptions {
            source_column: source.map(str::to_owned),
            target_column: target.map(str::to_owned),
            weight_column: weight.map(str::to_owned),
            weights: weight.map(|_| WeightType::F64),
            ..SourceOptions::default()
        };
        let found = |header: &str, options: &SourceOptions| {
            roles(header, options).map(|roles| (roles.source, roles.target, roles.weight))
        };
        assert_eq!(found("a,b,c", &options(Some("c"), Some("a"), None)), Ok((2, 0, None)));
        assert_eq!(found("source,target", &options(Some("TARGET"), Some("source"), None)), Ok((1, 0, None)));
        assert_eq!(found("a,target,b", &options(Some("b"), None, None)), Ok((2, 1, None)));
        assert_eq!(found("a,b", &options(None, Some("a"), None)), Ok((1, 0, None)));
        assert_eq!(found("a,b,c", &options(None, None, Some("b"))), Ok((0, 2, Some(1))));
        assert_eq!(found("x,2,1", &options(Some("1"), Some("2"), None)), Ok((2, 1, None)), "a number is a name");
        assert_eq!(found("a_b,A B,c", &options(Some("A B"), Some("c"), None)), Ok((1, 2, None)));
        for (header, options, part) in [
            ("a_b,A B,c", options(Some("ab"), Some("c"), None), "2 columns have this name"),
            ("x,x,c", options(Some("x"), Some("c"), None), "2 columns have this name among 'x', 'x' and 'c'"),
            (
                "a,b",
                options(Some("1"), None, None),
                "cannot find the column '1' of --source-column: the columns are 'a' and 'b'",
            ),
            ("a,b,c", options(Some("a"), None, None), "--target-column"),
            ("a,b,c", options(Some("a"), Some("a"), None), "cannot take the column 'a' as both source and target"),
            ("a,b,c", options(Some("a"), Some("b"), Some("a")), "as both a key and the weight"),
        ] {
            let message = found(header, &options).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn weights_are_told_by_name_or_alone() {
        let weighted = SourceOptions { weights: Some(WeightType::F64), ..SourceOptions::default() };
        let weight = |header: &str| roles(header, &weighted).map(|roles| roles.weight);
        assert_eq!(weight("source,target,x"), Ok(Some(2)));
        assert_eq!(weight("source,time,target,Weight"), Ok(Some(3)));
        assert_eq!(weight("source,target,cost,distance,weight"), Ok(Some(4)));
        assert_eq!(weight("a,b,cost"), Ok(Some(2)));
        for header in ["source,target,x,y", "source,target,cost,distance", "source,target"] {
            assert!(weight(header).unwrap_err().contains("--weight-column"), "{header}");
        }
    }

    #[test]
    fn vertices_have_a_key() {
        let vertex = |header: &str| TableColumnNames::new(header.split(',')).vertex_role(&SourceOptions::default());
        assert_eq!(vertex("label,id"), Ok(1));
        assert_eq!(vertex("x,~id,:LABEL"), Ok(1));
        assert_eq!(vertex("a:ID(Person),name"), Ok(0));
        assert_eq!(vertex(",user"), Ok(1));
        assert!(vertex("package,size").unwrap_err().contains("--vertex-column"));
    }
}
