//! NodeLabels of nodes that take the place of their ids.
//!
//! GML and Pajek number their nodes, and give each its name as a label.

use std::collections::HashMap;

use anden_base::size::size;

use crate::number::parse_u64;
use crate::options::{KeyKind, SourceOptions};

/// The largest size of all labels in memory, with their ids.
const MAX_LABEL_BYTES: usize = 1 << 30;
/// The approximate memory of an entry beside its texts.
const ENTRY_BYTES: usize = 64;

/// Whether labels may be keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LabelUse {
    /// A label is a property as any other.
    Property,
    /// A label is a property, which is left out if it repeats the ids.
    Repeated,
    /// If keys are text, labels are the keys.
    Text,
    /// NodeLabels are the keys if they are keys of the wanted type.
    Key,
}

/// The labels of nodes, by id.
#[derive(Debug, Default)]
pub(crate) struct NodeLabels {
    by_id: HashMap<Vec<u8>, Vec<u8>>,
}

impl NodeLabels {
    pub(crate) fn of(&self, id: &[u8]) -> Option<&[u8]> {
        self.by_id.get(id).map(|label| &label[..])
    }
}

/// What a look at all labels found.
#[derive(Debug)]
pub(crate) enum FoundLabels {
    /// NodeLabels are not keys, for this reason if they could have been.
    Property(Option<String>),
    /// All labels equal the ids.
    Repeated,
    /// NodeLabels are keys.
    Keys(NodeLabels),
}

/// Collects the labels of a document.
#[derive(Debug)]
pub(crate) struct LabelCollector {
    label_use: LabelUse,
    keys: KeyKind,
    /// Whether an empty label may be a key.
    takes_empty: bool,
    labels: NodeLabels,
    num_bytes: usize,
    are_ids: bool,
    has_labels: bool,
    /// The reason why labels are no keys.
    unfit: Option<String>,
}

impl LabelCollector {
    pub(crate) fn new(label_use: LabelUse, options: &SourceOptions) -> Self {
        Self {
            label_use,
            keys: options.keys,
            takes_empty: options.empty_ids,
            labels: NodeLabels::default(),
            num_bytes: 0,
            are_ids: true,
            has_labels: false,
            unfit: None,
        }
    }

    fn may_be_keys(&self) -> bool {
        let is_wanted = match self.label_use {
            LabelUse::Property | LabelUse::Repeated => false,
            LabelUse::Text => self.keys == KeyKind::String,
            LabelUse::Key => true,
        };
        is_wanted && self.unfit.is_none()
    }

    /// Adds a node.
    pub(crate) fn add(&mut self, id: &[u8], label: Option<&[u8]>) {
        self.are_ids &= label == Some(id);
        self.has_labels |= label.is_some();
        if !self.may_be_keys() {
            return;
        }
        let Some(label) = label.filter(|label| self.takes_empty || !label.is_empty()) else {
            return self.give_up("not every node has a label".into());
        };
        if self.keys == KeyKind::Integer && parse_u64(label).is_none() {
            return self.give_up("labels are no integers; --ids string takes them".into());
        }
        self.num_bytes += id.len() + label.len() + ENTRY_BYTES;
        if self.num_bytes > MAX_LABEL_BYTES {
            return self.give_up(format!("the labels take more than {} of memory", size(MAX_LABEL_BYTES as u64)));
        }
        self.labels.by_id.insert(id.to_vec(), label.to_vec());
    }

    fn give_up(&mut self, why: String) {
        self.unfit = Some(why);
        self.labels = NodeLabels::default();
    }

    /// Decides about the labels.
    pub(crate) fn finish(mut self) -> FoundLabels {
        if !self.has_labels || self.label_use == LabelUse::Property {
            return FoundLabels::Property(None);
        }
        if self.are_ids {
            return FoundLabels::Repeated;
        }
        if self.may_be_keys() {
            let mut labels: Vec<&[u8]> = self.labels.by_id.values().map(|label| &label[..]).collect();
            labels.sort_unstable();
            match labels.windows(2).find(|pair| pair[0] == pair[1]) {
                None => return FoundLabels::Keys(self.labels),
                Some(pair) => {
                    let shown = anden_base::message::shown(pair[0]);
                    self.unfit = Some(format!("two nodes have the label {shown}"));
                }
            }
        }
        FoundLabels::Property(self.unfit)
    }
}
