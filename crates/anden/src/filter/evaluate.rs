//! Predicates over columns, by Arrow's compute kernels.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Datum, DictionaryArray, Float64Array, PrimitiveArray, Scalar};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::ArrowError;
use graph::property::{PropertyColumn, PropertyType, TypedArray};

use super::expression::{Calculation, Comparison, Node, Predicate};
use crate::{Error, Result};

impl Predicate {
    /// For each row of `columns`, the properties that the predicate reads: whether it is true. Null is not.
    ///
    /// # Errors
    /// A calculation leaves the range of its type, or divides by zero.
    pub(super) fn passes(&self, columns: &[PropertyColumn], num_rows: usize) -> Result<BooleanBuffer> {
        let rows = Rows { columns, num_rows };
        let failed = |error: ArrowError| Error::InvalidInput(format!("a calculation fails: {error}"));
        let (values, nulls) = rows.truth(&self.root).map_err(failed)?.into_parts();
        Ok(nulls.map_or_else(|| values.clone(), |nulls| &values & nulls.inner()))
    }
}

struct Rows<'a> {
    columns: &'a [PropertyColumn],
    num_rows: usize,
}

/// A value for each row, or one for all.
enum Values {
    Each(ArrayRef),
    One(Scalar<ArrayRef>),
}

impl Datum for Values {
    fn get(&self) -> (&dyn Array, bool) {
        match self {
            Self::Each(array) => array.get(),
            Self::One(scalar) => scalar.get(),
        }
    }
}

impl Values {
    /// The same kind of values, made anew.
    fn with(&self, array: ArrayRef) -> Self {
        match self {
            Self::Each(_) => Self::Each(array),
            Self::One(_) => Self::One(Scalar::new(array)),
        }
    }

    fn column(&self) -> Result<PropertyColumn, ArrowError> {
        let array = match self {
            Self::Each(array) => array.clone(),
            Self::One(scalar) => scalar.clone().into_inner(),
        };
        PropertyColumn::from_array(array).map_err(|error| ArrowError::ComputeError(error.to_string()))
    }
}

impl Rows<'_> {
    /// Whether a node is true, row by row.
    fn truth(&self, node: &Node) -> Result<BooleanArray, ArrowError> {
        match node {
            Node::All(parts) => self.joined(parts, arrow_arith::boolean::and_kleene, true),
            Node::Any(parts) => self.joined(parts, arrow_arith::boolean::or_kleene, false),
            Node::Not(inner) => arrow_arith::boolean::not(&self.truth(inner)?),
            Node::IsNull(inner) => {
                let values = self.values(inner)?;
                let (array, _) = values.get();
                self.for_all(&arrow_arith::boolean::is_null(array)?)
            }
            Node::Compare(comparison, both) => {
                let (first, second) = (self.values(&both[0])?, self.values(&both[1])?);
                let compare = match comparison {
                    Comparison::Equal => arrow_ord::cmp::eq,
                    Comparison::NotEqual => arrow_ord::cmp::neq,
                    Comparison::Less => arrow_ord::cmp::lt,
                    Comparison::LessOrEqual => arrow_ord::cmp::lt_eq,
                    Comparison::Greater => arrow_ord::cmp::gt,
                    Comparison::GreaterOrEqual => arrow_ord::cmp::gt_eq,
                };
                self.for_all(&by_text(&first, &second, |first, second| compare(first, second))?)
            }
            Node::Like { is_case_sensitive, both } => {
                let (text, pattern) = (self.values(&both[0])?, self.values(&both[1])?);
                let like = if *is_case_sensitive { arrow_string::like::like } else { arrow_string::like::ilike };
                self.for_all(&by_text(&text, &pattern, |text, pattern| like(text, pattern))?)
            }
            value => {
                let values = self.values(value)?;
                self.for_all(values.get().0.as_boolean())
            }
        }
    }

    /// The answers of all parts in one; `of_none` where there is no part.
    fn joined(
        &self,
        parts: &[Node],
        join: fn(&BooleanArray, &BooleanArray) -> Result<BooleanArray, ArrowError>,
        of_none: bool,
    ) -> Result<BooleanArray, ArrowError> {
        let all = BooleanArray::from(vec![of_none; self.num_rows]);
        parts.iter().try_fold(all, |all, part| join(&all, &self.truth(part)?))
    }

    /// One answer for all rows, or one for each as it is.
    fn for_all(&self, answers: &BooleanArray) -> Result<BooleanArray, ArrowError> {
        if answers.len() == self.num_rows {
            return Ok(answers.clone());
        }
        let answer = (answers.len() == 1 && answers.is_valid(0)).then(|| answers.value(0));
        Ok(BooleanArray::from(vec![answer; self.num_rows]))
    }

    fn values(&self, node: &Node) -> Result<Values, ArrowError> {
        Ok(match node {
            Node::Column(place) => Values::Each(self.columns[*place].array().clone()),
            Node::Literal(array) => Values::One(Scalar::new(array.clone())),
            Node::AsReal(inner) => {
                let values = self.values(inner)?;
                let array = as_real(&values.column()?);
                values.with(Arc::new(array))
            }
            Node::AsTimestamp(inner) => {
                let values = self.values(inner)?;
                let column = values.column()?.converted(PropertyType::Timestamp);
                let column = column.map_err(|error| ArrowError::ComputeError(error.to_string()))?;
                values.with(column.array().clone())
            }
            Node::Minus(inner) => {
                let values = self.values(inner)?;
                let negative = arrow_arith::numeric::neg(values.get().0)?;
                values.with(negative)
            }
            Node::Calculate(calculation, both) => self.calculated(*calculation, both)?,
            truth => Values::Each(Arc::new(self.truth(truth)?)),
        })
    }

    fn calculated(&self, calculation: Calculation, both: &[Node; 2]) -> Result<Values, ArrowError> {
        let (first, second) = (self.values(&both[0])?, self.values(&both[1])?);
        let calculate = match calculation {
            Calculation::Add => arrow_arith::numeric::add,
            Calculation::Subtract => arrow_arith::numeric::sub,
            Calculation::Multiply => arrow_arith::numeric::mul,
            Calculation::Divide => arrow_arith::numeric::div,
            Calculation::Remainder => arrow_arith::numeric::rem,
            Calculation::BitAnd | Calculation::BitOr | Calculation::BitXor => {
                let (first, second) = (self.each(first)?, self.each(second)?);
                return Ok(Values::Each(match first.as_primitive_opt::<Int64Type>() {
                    Some(bits) => bitwise(calculation, bits, second.as_primitive())?,
                    None => bitwise::<UInt64Type>(calculation, first.as_primitive(), second.as_primitive())?,
                }));
            }
        };
        let array = calculate(&first, &second)?;
        let is_one = matches!((&first, &second), (Values::One(_), Values::One(_)));
        Ok(if is_one { Values::One(Scalar::new(array)) } else { Values::Each(array) })
    }

    /// A value for each row.
    fn each(&self, values: Values) -> Result<ArrayRef, ArrowError> {
        match values {
            Values::Each(array) => Ok(array),
            Values::One(scalar) => {
                let column = Values::One(scalar).column()?;
                Ok(column.gather(&vec![0; self.num_rows]).array().clone())
            }
        }
    }
}

/// Compares values. Where one side is a column with a dictionary and the other one value for all rows, each text of the
/// dictionary is compared once.
fn by_text(
    first: &Values,
    second: &Values,
    compare: impl Fn(&dyn Datum, &dyn Datum) -> Result<BooleanArray, ArrowError>,
) -> Result<BooleanArray, ArrowError> {
    let coded = |values: &Values| match values {
        Values::Each(array) => {
            let coded = array.as_any_dictionary_opt()?.as_any().downcast_ref::<DictionaryArray<UInt32Type>>()?;
            // A dictionary that is larger than what names it is not worth it.
            (coded.values().len() <= coded.len()).then(|| coded.clone())
        }
        Values::One(_) => None,
    };
    let (codes, answers) = match (first, second) {
        (column, Values::One(_)) if let Some(coded) = coded(column) => {
            (coded.keys().clone(), compare(coded.values(), second)?)
        }
        (Values::One(_), column) if let Some(coded) = coded(column) => {
            (coded.keys().clone(), compare(first, coded.values())?)
        }
        _ => return compare(first, second),
    };
    let is = |row: usize, bits: &BooleanBuffer| {
        bits.len() > codes.value(row) as usize && bits.value(codes.value(row) as usize)
    };
    let bits = BooleanBuffer::collect_bool(codes.len(), |row| is(row, answers.values()));
    let nulls = answers.nulls().map(|nulls| BooleanBuffer::collect_bool(codes.len(), |row| is(row, nulls.inner())));
    Ok(BooleanArray::new(bits, NullBuffer::union(codes.nulls(), nulls.map(NullBuffer::new).as_ref())))
}

fn bitwise<T: ArrowPrimitiveType>(
    calculation: Calculation,
    first: &PrimitiveArray<T>,
    second: &PrimitiveArray<T>,
) -> Result<ArrayRef, ArrowError>
where
    T::Native: std::ops::BitAnd<Output = T::Native>
        + std::ops::BitOr<Output = T::Native>
        + std::ops::BitXor<Output = T::Native>,
{
    Ok(Arc::new(match calculation {
        Calculation::BitOr => arrow_arith::bitwise::bitwise_or(first, second)?,
        Calculation::BitXor => arrow_arith::bitwise::bitwise_xor(first, second)?,
        _ => arrow_arith::bitwise::bitwise_and(first, second)?,
    }))
}

/// Numbers as floating ones, to the nearest.
fn as_real(column: &PropertyColumn) -> Float64Array {
    match column.values() {
        TypedArray::I64(array) => array.unary::<_, Float64Type>(|value| value as f64),
        TypedArray::U64(array) => array.unary::<_, Float64Type>(|value| value as f64),
        TypedArray::F32(array) => array.unary::<_, Float64Type>(f64::from),
        TypedArray::F64(array) => array.clone(),
        _ => Float64Array::new_null(column.len()),
    }
}
