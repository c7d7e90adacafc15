//! The YAML files of a graph: which tables it has, where their chunks lie, and what their columns mean.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use anden_base::message::shown;
use anden_graph::property::PropertyType;
use serde_json::Value;

use super::chunk_file::ChunkFormat;
use crate::graphar_layout::{OWN_COLUMNS, group_folder};
use crate::{Error, Result};

/// The largest file in YAML that is read.
const MAX_INFO_BYTES: u64 = 1 << 20;

/// A graph.
pub(super) struct GraphInfo {
    pub(super) vertices: Vec<VertexInfo>,
    pub(super) edges: Vec<EdgeInfo>,
    /// Whether keys are unique over all types, and labels and types are columns, as Anden writes them.
    pub(super) has_own_columns: bool,
}

/// The vertices of one type.
pub(super) struct VertexInfo {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) chunk_size: u64,
    pub(super) num_vertices: u64,
    pub(super) groups: Vec<PropertyGroup>,
}

/// The edges of one type between vertices of two types.
pub(super) struct EdgeInfo {
    pub(super) path: PathBuf,
    pub(super) name: String,
    /// The positions of the vertex types of sources and of targets.
    pub(super) ends: [usize; 2],
    pub(super) is_directed: bool,
    pub(super) chunk_size: u64,
    /// The number of vertices of a part: of sources, or of targets if edges are grouped by these.
    pub(super) part_size: u64,
    pub(super) is_by_source: bool,
    /// The folder of the lists, with the folders of the property groups.
    pub(super) folder: PathBuf,
    /// The format of the lists.
    pub(super) format: ChunkFormat,
    pub(super) groups: Vec<PropertyGroup>,
}

/// Properties that share files.
pub(super) struct PropertyGroup {
    pub(super) folder: PathBuf,
    pub(super) format: ChunkFormat,
    pub(super) properties: Vec<StatedProperty>,
}

/// A property.
pub(super) struct StatedProperty {
    pub(super) name: String,
    /// `None` if a value is a list.
    pub(super) property_type: Option<PropertyType>,
    pub(super) is_primary: bool,
}

impl VertexInfo {
    /// The property that holds the keys.
    pub(super) fn key(&self) -> Option<&StatedProperty> {
        self.groups.iter().flat_map(|group| &group.properties).find(|property| property.is_primary)
    }

    /// Whether keys are text.
    pub(super) fn has_text_keys(&self) -> bool {
        self.key().is_some_and(|key| key.property_type == Some(PropertyType::String))
    }
}

/// An object in YAML.
struct InfoFile {
    path: PathBuf,
    content: Value,
}

impl InfoFile {
    fn open(path: &Path) -> Result<Self> {
        let io = |operation, e| anden_base::Error::io(operation, path, e);
        let bad = |what: String| Error::Input { path: path.to_owned(), what };
        let mut text = String::new();
        let file = File::open(path).map_err(|e| io("open", e))?;
        file.take(MAX_INFO_BYTES + 1).read_to_string(&mut text).map_err(|e| io("read", e))?;
        if text.len() as u64 > MAX_INFO_BYTES {
            return Err(bad(format!("expected at most {MAX_INFO_BYTES} bytes of YAML, found more")));
        }
        let content: Value = serde_saphyr::from_str(&text).map_err(|error| {
            let error = error.to_string();
            bad(format!("the YAML cannot be read: {}", error.lines().next().unwrap_or_default()))
        })?;
        let file = Self { path: path.to_owned(), content };
        if let Some(version) = file.content.get("version").and_then(Value::as_str)
            && !version.starts_with("gar/v1")
        {
            return Err(file.bad(&format!("expected the version gar/v1, found {}", shown(version.as_bytes()))));
        }
        Ok(file)
    }

    fn bad(&self, what: &str) -> Error {
        Error::Input { path: self.path.clone(), what: what.to_owned() }
    }

    fn text_of(&self, object: &Value, name: &str) -> Result<String> {
        match object.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            // A name such as 7 needs no quotes in YAML.
            Some(other @ (Value::Number(_) | Value::Bool(_))) => Ok(other.to_string()),
            _ => Err(self.bad(&format!("expected '{name}' with a text"))),
        }
    }

    fn text(&self, name: &str) -> Result<String> {
        self.text_of(&self.content, name)
    }

    fn size(&self, name: &str) -> Result<u64> {
        let size = self.content.get(name).and_then(Value::as_u64).filter(|&size| size > 0 && size <= 1 << 40);
        size.ok_or_else(|| self.bad(&format!("expected '{name}' with a number of rows")))
    }

    fn list_of<'a>(&self, object: &'a Value, name: &str) -> Result<&'a [Value]> {
        match object.get(name) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(list)) => Ok(list),
            Some(_) => Err(self.bad(&format!("expected '{name}' with a list"))),
        }
    }

    /// A path below a folder. `None` if the object has none.
    fn path_of(&self, object: &Value, name: &str, folder: &Path) -> Result<Option<PathBuf>> {
        match object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.below(folder, &self.text_of(object, name)?).map(Some),
        }
    }

    /// A path below a folder, which may not leave the folder.
    fn below(&self, folder: &Path, path: &str) -> Result<PathBuf> {
        let is_within = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        match Path::new(path).components().all(is_within) && !path.contains("://") {
            true => Ok(folder.join(path)),
            false => {
                let what = format!("expected a path below the folder of the graph, found {}", shown(path.as_bytes()));
                Err(self.bad(&what))
            }
        }
    }

    fn chunk_format(&self, object: &Value) -> Result<ChunkFormat> {
        let found = self.text_of(object, "file_type")?;
        ChunkFormat::of_name(&found).ok_or_else(|| {
            self.bad(&format!(
                "expected chunks in Parquet or CSV, found {}; write the graph with file_type: parquet",
                shown(found.as_bytes())
            ))
        })
    }

    fn groups(&self, folder: &Path) -> Result<Vec<PropertyGroup>> {
        let mut groups = Vec::new();
        for group in self.list_of(&self.content, "property_groups")? {
            let stated = self.list_of(group, "properties")?;
            let mut properties = stated.iter().map(|stated| self.property(stated)).collect::<Result<Vec<_>>>()?;
            let usual = || self.below(folder, &group_folder(properties.iter().map(|property| &property.name[..])));
            let folder = self.path_of(group, "prefix", folder)?.map_or_else(usual, Ok)?;
            let format = self.chunk_format(group)?;
            if format == ChunkFormat::Csv {
                // CSV has no form for lists.
                let has_lists =
                    |property: &&mut StatedProperty| property.property_type.and_then(PropertyType::items).is_some();
                properties.iter_mut().filter(has_lists).for_each(|property| property.property_type = None);
            }
            groups.push(PropertyGroup { folder, format, properties });
        }
        Ok(groups)
    }

    fn property(&self, stated: &Value) -> Result<StatedProperty> {
        let (name, data_type) = (self.text_of(stated, "name")?, self.text_of(stated, "data_type")?);
        let is_single = stated.get("cardinality").and_then(Value::as_str).is_none_or(|many| many == "single");
        // Earlier versions of the format name lists so.
        let in_list = data_type.strip_prefix("list<").and_then(|rest| rest.strip_suffix('>'));
        let value_type = match in_list.unwrap_or(&data_type) {
            "bool" => PropertyType::Boolean,
            "int32" | "int64" => PropertyType::I64,
            "float" => PropertyType::F32,
            "double" => PropertyType::F64,
            "string" => PropertyType::String,
            "date" => PropertyType::Date,
            "timestamp" => PropertyType::Timestamp,
            _ => {
                let found = shown(data_type.as_bytes());
                return Err(self.bad(&format!("expected a type of data for '{name}', found {found}")));
            }
        };
        let property_type = match (is_single, in_list) {
            (true, None) => Some(value_type),
            (true, Some(_)) | (false, None) => value_type.list(),
            (false, Some(_)) => None,
        };
        let is_primary = stated.get("is_primary").and_then(Value::as_bool).unwrap_or(false);
        Ok(StatedProperty { name, property_type, is_primary })
    }
}

/// The graph files in a folder.
pub(super) fn graph_files(folder: &Path) -> Vec<PathBuf> {
    let is_graph = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with(".graph.yml") || name.ends_with(".graph.yaml")
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_graph).collect();
    found.sort_unstable();
    found
}

impl GraphInfo {
    /// Reads the file of a graph, and the files of its types.
    ///
    /// # Errors
    /// A file cannot be read, lacks an entry, or names a path outside the folder.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = InfoFile::open(path)?;
        let root = path.parent().unwrap_or(Path::new(""));
        let folder = file.path_of(&file.content, "prefix", root)?.unwrap_or_else(|| root.to_owned());
        let paths = |name: &str| -> Result<Vec<PathBuf>> {
            let stated = file.list_of(&file.content, name)?.iter();
            let unnamed = || file.bad("expected names of YAML files");
            stated.map(|stated| file.below(root, stated.as_str().ok_or_else(unnamed)?)).collect()
        };
        let vertices: Vec<VertexInfo> =
            paths("vertices")?.iter().map(|path| VertexInfo::open(path, &folder)).collect::<Result<_>>()?;
        if vertices.is_empty() {
            return Err(file.bad("expected 'vertices' with names of YAML files, found none: it is no graph of GraphAr"));
        }
        let edges =
            paths("edges")?.iter().map(|path| EdgeInfo::open(path, &folder, &vertices)).collect::<Result<_>>()?;
        let is_own = |entry: &Value| entry.get("key").and_then(Value::as_str) == Some(OWN_COLUMNS);
        let has_own_columns = file.list_of(&file.content, "extra_info")?.iter().any(is_own);
        Ok(Self { vertices, edges, has_own_columns })
    }
}

impl VertexInfo {
    fn open(path: &Path, root: &Path) -> Result<Self> {
        let file = InfoFile::open(path)?;
        let name = file.text("type")?;
        let folder = file.path_of(&file.content, "prefix", root)?;
        let folder = folder.map_or_else(|| file.below(root, &format!("vertex/{name}")), Ok)?;
        let groups = file.groups(&folder)?;
        let num_vertices = count_in(&folder.join("vertex_count"))?;
        // Also bounds the work for a type without files of properties.
        if num_vertices >= u64::from(u32::MAX) {
            return Err(file.bad(&format!("expected fewer than {} vertices, found {num_vertices}", u32::MAX)));
        }
        Ok(Self { path: file.path.clone(), name, chunk_size: file.size("chunk_size")?, num_vertices, groups })
    }
}

impl EdgeInfo {
    fn open(path: &Path, root: &Path, vertices: &[VertexInfo]) -> Result<Self> {
        let file = InfoFile::open(path)?;
        let [source, name, target] = [file.text("src_type")?, file.text("edge_type")?, file.text("dst_type")?];
        let end = |end: &str| {
            let place = vertices.iter().position(|vertex| vertex.name == end);
            place.ok_or_else(|| file.bad(&format!("no file of vertices has the type {}", shown(end.as_bytes()))))
        };
        let ends = [end(&source)?, end(&target)?];
        let folder = file.path_of(&file.content, "prefix", root)?;
        let folder = folder.map_or_else(|| file.below(root, &format!("edge/{source}_{name}_{target}")), Ok)?;
        let lists = file.list_of(&file.content, "adj_lists")?.iter();
        let facts = |list: &&Value| -> Option<(bool, bool)> {
            Some((list.get("ordered")?.as_bool()?, list.get("aligned_by")?.as_str()? == "src"))
        };
        // Lists by source come first, because their parts are those of the out-lists.
        let best = lists.min_by_key(|list| {
            facts(list)
                .map_or(u8::MAX, |(is_ordered, is_by_source)| u8::from(!is_ordered) + 2 * u8::from(!is_by_source))
        });
        let Some((list, (is_ordered, is_by_source))) = best.and_then(|list| Some((list, facts(&list)?))) else {
            return Err(file.bad("expected 'adj_lists' with 'ordered' and 'aligned_by', found none"));
        };
        let order = if is_ordered { "ordered" } else { "unordered" };
        let usual = format!("{order}_by_{}", if is_by_source { "source" } else { "dest" });
        let folder = file.path_of(list, "prefix", &folder)?.unwrap_or_else(|| folder.join(usual));
        Ok(Self {
            path: file.path.clone(),
            name,
            ends,
            is_directed: file.content.get("directed").and_then(Value::as_bool).unwrap_or(true),
            chunk_size: file.size("chunk_size")?,
            part_size: file.size(if is_by_source { "src_chunk_size" } else { "dst_chunk_size" })?,
            is_by_source,
            groups: file.groups(&folder)?,
            format: file.chunk_format(list)?,
            folder,
        })
    }
}

/// The number in a file of eight bytes.
pub(super) fn count_in(path: &Path) -> Result<u64> {
    let io = |operation, e| anden_base::Error::io(operation, path, e);
    let (mut bytes, file) = (Vec::new(), File::open(path).map_err(|e| io("open", e))?);
    file.take(9).read_to_end(&mut bytes).map_err(|e| io("read", e))?;
    let count = bytes.try_into().ok().map(i64::from_le_bytes).and_then(|count| u64::try_from(count).ok());
    count.ok_or_else(|| Error::Input { path: path.to_owned(), what: "expected a number of eight bytes".into() })
}
