//! Encodes the facts fixed at creation.

use anden_graph::{GraphKind, WeightType};

use super::Created;
use crate::encoding::{Decoder, Encoder};
use crate::options::{DatabaseId, GraphOptions, KeyScheme};

impl Created {
    pub(super) fn encode(&self, body: &mut Encoder) {
        let options = &self.options;
        body.bytes(&self.id.0);
        body.u64(self.unix_time);
        body.u8(match options.graph_kind {
            GraphKind::Directed => 0,
            GraphKind::Undirected => 1,
        });
        body.u8(options.multigraph.into());
        body.u8(options.ordered.into());
        body.u8(match options.keys {
            KeyScheme::Integer => 0,
            KeyScheme::String => 1,
            KeyScheme::Dense => 2,
        });
        body.u8(weight_number(options.weight_type));
        body.u8(options.in_edges.into());
        body.u8(options.edge_properties.into());
    }

    pub(super) fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let (id, unix_time) = (DatabaseId(decoder.array()?), decoder.u64()?);
        let graph_kind = if decoder.flag()? { GraphKind::Undirected } else { GraphKind::Directed };
        let (multigraph, ordered) = (decoder.flag()?, decoder.flag()?);
        let keys = match decoder.u8()? {
            0 => KeyScheme::Integer,
            1 => KeyScheme::String,
            2 => KeyScheme::Dense,
            _ => return None,
        };
        let weight_type = weight_type(decoder.u8()?)?;
        let (in_edges, edge_properties) = (decoder.flag()?, decoder.flag()?);
        let options = GraphOptions { graph_kind, multigraph, ordered, keys, weight_type, edge_properties, in_edges };
        Some(Self { id, unix_time, options })
    }
}

/// Number of a weight type on disk; 0 is none.
fn weight_number(weight_type: Option<WeightType>) -> u8 {
    match weight_type {
        None => 0,
        Some(WeightType::U32) => 1,
        Some(WeightType::I64) => 2,
        Some(WeightType::F32) => 3,
        Some(WeightType::F64) => 4,
    }
}

fn weight_type(number: u8) -> Option<Option<WeightType>> {
    let types = std::iter::once(None).chain(WeightType::ALL.iter().map(|&(weight_type, _)| Some(weight_type)));
    types.into_iter().find(|&weight_type| weight_number(weight_type) == number)
}
