//! Evaluates predicates on columns with Arrow's compute kernels.

use std::sync::Arc;

use anden_graph::property::{PropertyColumn, PropertyType, TypedArray};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Datum, DictionaryArray, Float64Array, PrimitiveArray, Scalar};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{ArrowError, DataType};

use super::expression::{Calculation, Comparison, Node, Predicate};
use crate::{Error, Result};

impl Predicate {
    /// For each row of `columns`, whether the predicate is true; null is not true. `columns` are the properties that
    /// the predicate reads.
    ///
    /// # Errors
    /// A calculation overflows or divides by zero.
    pub(crate) fn passes(&self, columns: &[PropertyColumn], num_rows: usize) -> Result<BooleanBuffer> {
        let rows = EvaluatedRows { columns, num_rows };
        let failed = |error: ArrowError| Error::InvalidInput(format!("a calculation fails: {error}").into());
        let (values, nulls) = rows.truth(&self.root).map_err(failed)?.into_parts();
        // As in SQL, null does not pass: clear the bits of null rows.
        Ok(nulls.map_or_else(|| values.clone(), |nulls| &values & nulls.inner()))
    }
}

struct EvaluatedRows<'a> {
    columns: &'a [PropertyColumn],
    num_rows: usize,
}

/// One value for each row, or one for all rows.
enum EvaluatedValues {
    Each(ArrayRef),
    One(Scalar<ArrayRef>),
}

impl Datum for EvaluatedValues {
    fn get(&self) -> (&dyn Array, bool) {
        match self {
            Self::Each(array) => array.get(),
            Self::One(scalar) => scalar.get(),
        }
    }
}

impl EvaluatedValues {
    /// Wraps an array as values of this kind.
    fn with(&self, array: ArrayRef) -> Self {
        match self {
            // One value stays one value, so that Arrow keeps its fast path for constants.
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

impl EvaluatedRows<'_> {
    /// Evaluates a Boolean node for each row.
    fn truth(&self, node: &Node) -> Result<BooleanArray, ArrowError> {
        match node {
            // Kleene logic: as in SQL, `false AND null` is false.
            Node::All(parts) => self.joined(parts, arrow_arith::boolean::and_kleene, true),
            Node::Any(parts) => self.joined(parts, arrow_arith::boolean::or_kleene, false),
            Node::Not(inner) => arrow_arith::boolean::not(&self.truth(inner)?),
            Node::IsNull(inner) => {
                let values = self.values(inner)?;
                let (array, _) = values.get();
                self.for_all(&arrow_arith::boolean::is_null(array)?)
            }
            Node::Compare(comparison, both) => {
                let (first, second) = (comparable(self.values(&both[0])?), comparable(self.values(&both[1])?));
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
                // The parser has checked the type, so the downcast cannot fail.
                self.for_all(values.get().0.as_boolean())
            }
        }
    }

    /// Combines the results of all parts; `of_none` is the result without parts.
    fn joined(
        &self,
        parts: &[Node],
        join: fn(&BooleanArray, &BooleanArray) -> Result<BooleanArray, ArrowError>,
        of_none: bool,
    ) -> Result<BooleanArray, ArrowError> {
        let Some((first, others)) = parts.split_first() else { return Ok(self.all(Some(of_none))) };
        others.iter().try_fold(self.truth(first)?, |all, part| join(&all, &self.truth(part)?))
    }

    /// The same answer for all rows; `None` is null.
    fn all(&self, answer: Option<bool>) -> BooleanArray {
        match answer {
            Some(true) => BooleanArray::new(BooleanBuffer::new_set(self.num_rows), None),
            Some(false) => BooleanArray::new(BooleanBuffer::new_unset(self.num_rows), None),
            None => BooleanArray::new_null(self.num_rows),
        }
    }

    /// Expands one result for all rows to one for each row.
    fn for_all(&self, answers: &BooleanArray) -> Result<BooleanArray, ArrowError> {
        if answers.len() == self.num_rows {
            return Ok(answers.clone());
        }
        // A comparison of two constants gives one answer for all rows.
        let answer = (answers.len() == 1 && answers.is_valid(0)).then(|| answers.value(0));
        Ok(self.all(answer))
    }

    fn values(&self, node: &Node) -> Result<EvaluatedValues, ArrowError> {
        Ok(match node {
            // Clones of an array share its buffers.
            Node::Column(place) => EvaluatedValues::Each(self.columns[*place].array().clone()),
            Node::Literal(array) => EvaluatedValues::One(Scalar::new(array.clone())),
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
            truth => EvaluatedValues::Each(Arc::new(self.truth(truth)?)),
        })
    }

    fn calculated(&self, calculation: Calculation, both: &[Node; 2]) -> Result<EvaluatedValues, ArrowError> {
        let (first, second) = (self.values(&both[0])?, self.values(&both[1])?);
        // The checked kernels of Arrow: an overflow is an error, never a wrong answer.
        let calculate = match calculation {
            Calculation::Add => arrow_arith::numeric::add,
            Calculation::Subtract => arrow_arith::numeric::sub,
            Calculation::Multiply => arrow_arith::numeric::mul,
            Calculation::Divide => arrow_arith::numeric::div,
            Calculation::Remainder => arrow_arith::numeric::rem,
            Calculation::BitAnd | Calculation::BitOr | Calculation::BitXor => {
                // These kernels take arrays of equal length, and no constants.
                let (first, second) = (self.each(first)?, self.each(second)?);
                return Ok(EvaluatedValues::Each(match first.as_primitive_opt::<Int64Type>() {
                    Some(bits) => bitwise(calculation, bits, second.as_primitive())?,
                    None => bitwise::<UInt64Type>(calculation, first.as_primitive(), second.as_primitive())?,
                }));
            }
        };
        let array = calculate(&first, &second)?;
        // Two constants give a constant, which is not expanded to all rows.
        let is_one = matches!((&first, &second), (EvaluatedValues::One(_), EvaluatedValues::One(_)));
        Ok(if is_one { EvaluatedValues::One(Scalar::new(array)) } else { EvaluatedValues::Each(array) })
    }

    /// Expands one value for all rows to one for each row.
    fn each(&self, values: EvaluatedValues) -> Result<ArrayRef, ArrowError> {
        match values {
            EvaluatedValues::Each(array) => Ok(array),
            EvaluatedValues::One(scalar) => {
                let column = EvaluatedValues::One(scalar).column()?;
                Ok(column.gather(&vec![0; self.num_rows]).array().clone())
            }
        }
    }
}

/// Floating-point values in the form that Arrow compares as SQL does; other values unchanged.
///
/// Arrow compares by the total order of IEEE 754. It tells -0 from 0, and NaNs by sign and payload.
fn comparable(values: EvaluatedValues) -> EvaluatedValues {
    let array = values.get().0;
    // The sum of -0 and 0 is 0. A positive NaN is greater than every number.
    let array: ArrayRef = match array.data_type() {
        DataType::Float32 => {
            let one_form = |value: f32| if value.is_nan() { f32::NAN } else { value + 0.0 };
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(one_form))
        }
        DataType::Float64 => {
            let one_form = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(one_form))
        }
        _ => return values,
    };
    values.with(array)
}

/// Compares values. If a dictionary column is compared with a constant, each text of the dictionary is compared once.
fn by_text(
    first: &EvaluatedValues,
    second: &EvaluatedValues,
    compare: impl Fn(&dyn Datum, &dyn Datum) -> Result<BooleanArray, ArrowError>,
) -> Result<BooleanArray, ArrowError> {
    let coded = |values: &EvaluatedValues| match values {
        EvaluatedValues::Each(array) => {
            let coded = array.as_any_dictionary_opt()?.as_any().downcast_ref::<DictionaryArray<UInt32Type>>()?;
            // A dictionary larger than its column would make more comparisons than rows.
            (coded.values().len() <= coded.len()).then(|| coded.clone())
        }
        EvaluatedValues::One(_) => None,
    };
    let (codes, answers) = match (first, second) {
        (column, EvaluatedValues::One(_)) if let Some(coded) = coded(column) => {
            (coded.keys().clone(), compare(coded.values(), second)?)
        }
        (EvaluatedValues::One(_), column) if let Some(coded) = coded(column) => {
            (coded.keys().clone(), compare(first, coded.values())?)
        }
        _ => return compare(first, second),
    };
    // A byte is faster to look up than a bit. A null row may hold any code, also one outside the dictionary.
    let of_rows = |bits: &BooleanBuffer| {
        let answers: Vec<bool> = bits.iter().collect();
        let codes = codes.values();
        BooleanBuffer::collect_bool(codes.len(), |row| answers.get(codes[row] as usize).is_some_and(|&is| is))
    };
    let bits = of_rows(answers.values());
    let nulls = answers.nulls().map(|nulls| of_rows(nulls.inner()));
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
        // Callers pass only the three operations on bits.
        _ => arrow_arith::bitwise::bitwise_and(first, second)?,
    }))
}

/// Numbers as `f64`, rounded to the nearest value.
fn as_real(column: &PropertyColumn) -> Float64Array {
    match column.values() {
        TypedArray::I64(array) => array.unary::<_, Float64Type>(|value| value as f64),
        TypedArray::U64(array) => array.unary::<_, Float64Type>(|value| value as f64),
        TypedArray::F32(array) => array.unary::<_, Float64Type>(f64::from),
        TypedArray::F64(array) => array.clone(),
        // The parser converts only numbers, so no other type comes here.
        _ => Float64Array::new_null(column.len()),
    }
}
