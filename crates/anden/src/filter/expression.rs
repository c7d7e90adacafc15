//! Parses a predicate into a typed tree.
//!
//! The grammar is SQL, parsed by `sqlparser`. This module restricts the expressions that a predicate may use, and
//! resolves the types of properties.

use anden_graph::property::{ColumnBuilder, OwnedValue, PropertyColumn, PropertyType, PropertyValue};
use arrow_array::ArrayRef;
use sqlparser::ast::{BinaryOperator, Expr, InTarget, Spanned, UnaryOperator, Value};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, Tokenizer};

use crate::error::no_such;
use crate::{Error, Result};

/// Maximum length of the text. Longer texts are refused before parsing.
pub(crate) const MAX_BYTES: usize = 64 << 10;
/// A chain of operators is a tree as deep as the chain, and the parser's tree is taken apart recursively. The limit
/// bounds the stack.
const MAX_PARTS: usize = 2_000;
/// The first character of a predicate.
const START: Location = Location { line: 1, column: 1 };
/// Maximum nesting depth.
const MAX_DEPTH: usize = 128;

/// A node of a predicate.
#[derive(Debug)]
pub(super) enum Node {
    /// A property, by its position among the columns that the predicate reads.
    Column(usize),
    /// A constant, as an array of length one.
    Literal(ArrayRef),
    /// Converts numbers to `f64`.
    AsReal(Box<Node>),
    /// Converts dates to timestamps at midnight.
    AsTimestamp(Box<Node>),
    Compare(Comparison, Box<[Node; 2]>),
    Calculate(Calculation, Box<[Node; 2]>),
    Minus(Box<Node>),
    /// Logical AND.
    All(Vec<Node>),
    /// Logical OR.
    Any(Vec<Node>),
    Not(Box<Node>),
    IsNull(Box<Node>),
    Like {
        is_case_sensitive: bool,
        both: Box<[Node; 2]>,
    },
}

impl Node {
    fn can_fail(&self) -> bool {
        match self {
            Self::Column(_) | Self::Literal(_) => false,
            // Operations on bits cannot overflow.
            Self::Calculate(Calculation::BitAnd | Calculation::BitOr | Calculation::BitXor, both)
            | Self::Compare(_, both) => both.iter().any(Self::can_fail),
            // A pattern that is not a literal may be too large.
            Self::Like { both, .. } => both[0].can_fail() || !matches!(both[1], Self::Literal(_)),
            // A date may lie beyond the range of timestamps, a result beyond that of its type.
            Self::AsTimestamp(_) | Self::Calculate(..) | Self::Minus(_) => true,
            Self::AsReal(inner) | Self::Not(inner) | Self::IsNull(inner) => inner.can_fail(),
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::can_fail),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calculation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    BitAnd,
    BitOr,
    BitXor,
}

/// The columns that a predicate may name.
pub(crate) struct PredicateColumns<'a> {
    pub(crate) columns: Vec<(&'a str, PropertyType)>,
    /// What messages call one of them, and their owners.
    pub(crate) noun: &'static str,
    pub(crate) whose: &'static str,
}

/// A predicate over the rows of columns, such as the properties of edges.
#[derive(Debug)]
pub(crate) struct Predicate {
    pub(super) root: Node,
    /// Positions of the columns that the predicate reads.
    pub(crate) columns: Vec<usize>,
}

impl Predicate {
    /// Parses a predicate over these columns.
    ///
    /// # Errors
    /// The text does not parse, names an unknown column, or mixes incompatible types. The message has the line
    /// and the character.
    pub(crate) fn parse(text: &str, known: &PredicateColumns<'_>) -> Result<Self> {
        let expression = parsed(text)?;
        let mut reader = ExpressionReader { known, columns: Vec::new(), depth: 0 };
        let root = reader.boolean(&expression)?;
        let predicate = Self { root, columns: reader.columns };
        // Evaluating zero rows reveals errors that do not depend on values.
        let columns = predicate.columns.iter().map(|&place| PropertyColumn::nulls(known.columns[place].1, 0));
        predicate.passes(&columns.collect::<Vec<_>>(), 0)?;
        Ok(predicate)
    }

    /// Whether some values make the evaluation fail, for example by overflow.
    pub(super) fn can_fail(&self) -> bool {
        self.root.can_fail()
    }
}

/// A node and its type; a null literal has none.
type Typed = (Node, Option<PropertyType>);

struct ExpressionReader<'a> {
    known: &'a PredicateColumns<'a>,
    columns: Vec<usize>,
    depth: usize,
}

fn parsed(text: &str) -> Result<Expr> {
    if text.len() > MAX_BYTES {
        return Err(wrong(START, format!("{} bytes of text, at most {MAX_BYTES} are possible", text.len())));
    }
    let dialect = GenericDialect {};
    let tokens = Tokenizer::new(&dialect, text).tokenize_with_location();
    let tokens = tokens.map_err(|error| wrong(error.location, error.message))?;
    // Counted before parsing, because the parser itself builds the deep tree.
    let num_parts = tokens.iter().filter(|token| may_nest(&token.token)).count();
    if num_parts > MAX_PARTS {
        return Err(wrong(START, format!("{num_parts} names and operators, at most {MAX_PARTS} are possible")));
    }
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
    // The parser stops at the first token that it cannot use, so none must be left.
    let expression = parser.parse_expr().and_then(|expression| match &parser.peek_token_ref().token {
        Token::EOF => Ok(expression),
        _ => parser.expected("the end", parser.peek_token()),
    });
    expression.map_err(|error| match error {
        ParserError::TokenizerError(what) | ParserError::ParserError(what) => {
            let (what, place) = what.rsplit_once(" at Line: ").unwrap_or((&what, ""));
            let place = place.split_once(", Column: ");
            let place = place.and_then(|(line, column)| Some((line.trim().parse().ok()?, column.trim().parse().ok()?)));
            // Without a position, the error is at the end of the text.
            wrong(place.map_or_else(|| end_of(text), |(line, column)| Location::new(line, column)), what)
        }
        ParserError::RecursionLimitExceeded => too_deep(START),
    })
}

/// Whether a token can add a level to the tree. The parser limits parentheses itself.
fn may_nest(token: &Token) -> bool {
    // A long IN list is wide, not deep: its commas and literals do not count.
    let is_flat = matches!(token, Token::Whitespace(_) | Token::Comma | Token::LParen | Token::RParen);
    !is_flat && !matches!(token, Token::Number(..) | Token::SingleQuotedString(_))
}

fn too_deep(place: Location) -> Error {
    wrong(place, "the expression is nested too deep")
}

fn wrong(Location { line, column }: Location, what: impl std::fmt::Display) -> Error {
    // Most predicates have one line, whose number says nothing. The parser gives 0 for an empty place.
    let line = if line > 1 { format!("line {line}, ") } else { String::new() };
    Error::InvalidInput(format!("{line}character {}: {what}", column.max(1)).into())
}

/// The place behind the last character.
fn end_of(text: &str) -> Location {
    let last_line = text.rsplit('\n').next().unwrap_or_default();
    Location::new(text.matches('\n').count() as u64 + 1, last_line.chars().count() as u64 + 1)
}

fn wrong_at(expression: &Expr, what: impl std::fmt::Display) -> Error {
    wrong(start(expression), what)
}

/// The place at which an expression begins.
fn start(expression: &Expr) -> Location {
    let mut first = expression;
    // The span of a chain visits all its parts, but only the first one matters.
    while let Expr::BinaryOp { left, .. } = first {
        first = left;
    }
    first.span().start
}

fn said(of: Option<PropertyType>) -> &'static str {
    of.map_or("null", PropertyType::name)
}

impl ExpressionReader<'_> {
    /// A Boolean expression.
    fn boolean(&mut self, expression: &Expr) -> Result<Node> {
        let (node, found) = self.value(expression)?;
        match found {
            // A null literal counts as Boolean, and is never true.
            None | Some(PropertyType::Boolean) => Ok(node),
            Some(found) => {
                Err(wrong_at(expression, format!("true or false expected, found {expression} of type {found}")))
            }
        }
    }

    fn value(&mut self, expression: &Expr) -> Result<Typed> {
        self.depth += 1;
        // Each level is a recursive call, so the limit bounds the stack.
        if self.depth > MAX_DEPTH {
            return Err(too_deep(start(expression)));
        }
        let value = self.value_at_depth(expression);
        self.depth -= 1;
        value
    }

    fn value_at_depth(&mut self, expression: &Expr) -> Result<Typed> {
        let boolean = |node| Ok((node, Some(PropertyType::Boolean)));
        match expression {
            Expr::Nested(inner) => self.value(inner),
            Expr::Identifier(name) => self.column(expression, &name.value),
            Expr::Value(value) => literal(expression, &value.value),
            // In `DATE '2024-02-29'` the type adds nothing: the other operand decides it.
            Expr::TypedString(text) => match &text.value.value {
                Value::SingleQuotedString(_) => literal(expression, &text.value.value),
                _ => Err(not_allowed(expression)),
            },
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => boolean(Node::Not(Box::new(self.boolean(expr)?))),
            Expr::UnaryOp { op: UnaryOperator::Plus, expr } => self.number(expr),
            // The sign joins the literal first: -9223372036854775808 is an i64, its absolute value is not.
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
                Expr::Value(value) => negative(expression, &value.value),
                _ => {
                    let (node, found) = self.number(expr)?;
                    Ok((Node::Minus(Box::new(node)), found))
                }
            },
            Expr::IsNull(inner) => boolean(Node::IsNull(Box::new(self.value(inner)?.0))),
            Expr::IsNotNull(inner) => boolean(Node::Not(Box::new(Node::IsNull(Box::new(self.value(inner)?.0))))),
            Expr::BinaryOp { left, op, right } => self.binary(expression, left, op, right),
            // SQL defines IN as a chain of OR, which also fixes the result for nulls.
            Expr::In { expr, target: InTarget::List(list), negated, global: false } => {
                let equal = list.iter().map(|item| self.compare(Comparison::Equal, expr, item));
                boolean(negated_if(*negated, Node::Any(equal.collect::<Result<_>>()?)))
            }
            Expr::Between { expr, negated, low, high } => {
                let low = self.compare(Comparison::GreaterOrEqual, expr, low)?;
                let high = self.compare(Comparison::LessOrEqual, expr, high)?;
                boolean(negated_if(*negated, Node::All(vec![low, high])))
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
                boolean(negated_if(*negated, self.like(true, expr, pattern)?))
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char: None } => {
                boolean(negated_if(*negated, self.like(false, expr, pattern)?))
            }
            _ => Err(not_allowed(expression)),
        }
    }

    fn column(&mut self, expression: &Expr, name: &str) -> Result<Typed> {
        let PredicateColumns { columns, noun, whose } = self.known;
        let Some(place) = columns.iter().position(|(known, _)| *known == name) else {
            let known = columns.iter().map(|(known, _)| *known);
            return Err(wrong_at(expression, no_such(noun, whose, name, known)));
        };
        // A list is compared as its text.
        let property_type = columns[place].1.stored();
        // A property that is named repeatedly is read once.
        let column = self.columns.iter().position(|&known| known == place).unwrap_or_else(|| {
            self.columns.push(place);
            self.columns.len() - 1
        });
        Ok((Node::Column(column), Some(property_type)))
    }

    fn binary(&mut self, expression: &Expr, left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Typed> {
        let comparison = match op {
            BinaryOperator::And | BinaryOperator::Or => {
                // A long AND or OR chain leans to the left. Flatten it here, so that its length does not count as
                // depth.
                let (mut first, mut parts) = (left, vec![right]);
                while let Expr::BinaryOp { left, op: other, right } = first
                    && other == op
                {
                    parts.push(right);
                    first = left;
                }
                // The chain is read from its right end, so the parts are reversed.
                let parts = std::iter::once(first).chain(parts.into_iter().rev());
                let parts = parts.map(|part| self.boolean(part)).collect::<Result<_>>()?;
                let node = if *op == BinaryOperator::And { Node::All(parts) } else { Node::Any(parts) };
                return Ok((node, Some(PropertyType::Boolean)));
            }
            BinaryOperator::Eq => Comparison::Equal,
            BinaryOperator::NotEq => Comparison::NotEqual,
            BinaryOperator::Lt => Comparison::Less,
            BinaryOperator::LtEq => Comparison::LessOrEqual,
            BinaryOperator::Gt => Comparison::Greater,
            BinaryOperator::GtEq => Comparison::GreaterOrEqual,
            _ => return self.calculation(expression, left, op, right),
        };
        Ok((self.compare(comparison, left, right)?, Some(PropertyType::Boolean)))
    }

    fn calculation(&mut self, expression: &Expr, left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Typed> {
        let calculation = match op {
            BinaryOperator::Plus => Calculation::Add,
            BinaryOperator::Minus => Calculation::Subtract,
            BinaryOperator::Multiply => Calculation::Multiply,
            BinaryOperator::Divide => Calculation::Divide,
            BinaryOperator::Modulo => Calculation::Remainder,
            BinaryOperator::BitwiseAnd => Calculation::BitAnd,
            BinaryOperator::BitwiseOr => Calculation::BitOr,
            BinaryOperator::BitwiseXor => Calculation::BitXor,
            _ => return Err(not_allowed(expression)),
        };
        let (first, second) = (self.number(left)?, self.number(right)?);
        let Some((first, second, of)) = self.same_type(first, second) else {
            return Err(wrong_at(expression, format!("{left} and {right} are of types that do not go together")));
        };
        let is_bitwise = matches!(calculation, Calculation::BitAnd | Calculation::BitOr | Calculation::BitXor);
        if is_bitwise && !matches!(of, None | Some(PropertyType::I64 | PropertyType::U64)) {
            return Err(wrong_at(expression, format!("bits are those of whole numbers, not of type {}", said(of))));
        }
        Ok((Node::Calculate(calculation, Box::new([first, second])), of))
    }

    fn number(&mut self, expression: &Expr) -> Result<Typed> {
        let (node, found) = self.value(expression)?;
        match found.is_none_or(PropertyType::is_numeric) {
            true => Ok((node, found)),
            false => {
                Err(wrong_at(expression, format!("a number expected, found {expression} of type {}", said(found))))
            }
        }
    }

    fn compare(&mut self, comparison: Comparison, left: &Expr, right: &Expr) -> Result<Node> {
        let (first, second) = (self.value(left)?, self.value(right)?);
        let (first_type, second_type) = (first.1, second.1);
        match self.same_type(first, second) {
            Some((first, second, _)) => Ok(Node::Compare(comparison, Box::new([first, second]))),
            None => {
                let (a, b) = (said(first_type), said(second_type));
                Err(wrong_at(left, format!("{left} of type {a} cannot be compared with {right} of type {b}")))
            }
        }
    }

    fn like(&mut self, is_case_sensitive: bool, text: &Expr, pattern: &Expr) -> Result<Node> {
        let mut string = |expression: &Expr| match self.value(expression)? {
            (node, None | Some(PropertyType::String)) => Ok(node),
            (_, found) => {
                Err(wrong_at(expression, format!("text expected, found {expression} of type {}", said(found))))
            }
        };
        Ok(Node::Like { is_case_sensitive, both: Box::new([string(text)?, string(pattern)?]) })
    }

    /// Converts two values to a common type; `None` if no type holds both.
    fn same_type(&self, first: Typed, second: Typed) -> Option<(Node, Node, Option<PropertyType>)> {
        use PropertyType::{Date, F32, F64, I64, String, Timestamp, U64};
        let ((first, a), (second, b)) = (first, second);
        let (Some(a), Some(b)) = (a, b) else {
            let of = a.or(b);
            return Some((typed_null(first, a, of)?, typed_null(second, b, of)?, of));
        };
        if a == b {
            return Some((first, second, Some(a)));
        }
        // A literal takes the type of the other side, if that type holds its value.
        if let Some(first) = literal_as(&first, b) {
            return Some((first, second, Some(b)));
        }
        if let Some(second) = literal_as(&second, a) {
            return Some((first, second, Some(a)));
        }
        match (a, b) {
            (Date, Timestamp) => Some((Node::AsTimestamp(Box::new(first)), second, Some(Timestamp))),
            (Timestamp, Date) => Some((first, Node::AsTimestamp(Box::new(second)), Some(Timestamp))),
            // Numbers of different types compare as `f64`, which may round large integers.
            (I64 | U64 | F32 | F64, I64 | U64 | F32 | F64) => {
                let real = |node, of| if of == F64 { node } else { Node::AsReal(Box::new(node)) };
                Some((real(first, a), real(second, b), Some(F64)))
            }
            (String, _) | (_, String) => None,
            _ => None,
        }
    }
}

/// A null literal takes the type of the other side.
fn typed_null(node: Node, of: Option<PropertyType>, wanted: Option<PropertyType>) -> Option<Node> {
    match (of, wanted) {
        (None, Some(wanted)) => Some(Node::Literal(one(PropertyValue::Null, wanted)?)),
        _ => Some(node),
    }
}

/// A literal converted to another type without loss. Text is parsed as in files.
fn literal_as(node: &Node, to: PropertyType) -> Option<Node> {
    let Node::Literal(array) = node else { return None };
    let column = PropertyColumn::from_array(array.clone()).ok()?;
    match column.get(0) {
        PropertyValue::String(text) if to != PropertyType::String && !to.is_numeric() => {
            let value = OwnedValue::parse(text, to).ok()?;
            Some(Node::Literal(one(value.as_value(), to)?))
        }
        value => Some(Node::Literal(one(value.converted(to)?, to)?)),
    }
}

fn one(value: PropertyValue<'_>, of: PropertyType) -> Option<ArrayRef> {
    let mut column = ColumnBuilder::new(of);
    column.push(value).ok()?;
    Some(column.finish().array().clone())
}

fn literal(expression: &Expr, value: &Value) -> Result<Typed> {
    let (value, of) = match value {
        Value::Number(digits, _) => return number(expression, digits),
        Value::SingleQuotedString(text) => (PropertyValue::String(text), Some(PropertyType::String)),
        Value::Boolean(value) => (PropertyValue::Boolean(*value), Some(PropertyType::Boolean)),
        Value::Null => (PropertyValue::Null, None),
        _ => return Err(not_allowed(expression)),
    };
    // A null literal has some type until the other side gives one.
    let array = one(value, of.unwrap_or(PropertyType::Boolean)).ok_or_else(|| not_allowed(expression))?;
    Ok((Node::Literal(array), of))
}

fn negative(expression: &Expr, value: &Value) -> Result<Typed> {
    match value {
        Value::Number(digits, _) => number(expression, &format!("-{digits}")),
        _ => Err(wrong_at(expression, format!("a number expected, found {value}"))),
    }
}

/// A number literal in the narrowest type: `i64`, `u64`, then `f64`.
fn number(expression: &Expr, digits: &str) -> Result<Typed> {
    for of in [PropertyType::I64, PropertyType::U64, PropertyType::F64] {
        if let Some(array) = OwnedValue::parse(digits, of).ok().and_then(|value| one(value.as_value(), of)) {
            return Ok((Node::Literal(array), Some(of)));
        }
    }
    Err(wrong_at(expression, format!("{digits} is no number of a type that properties have")))
}

fn negated_if(is_negated: bool, node: Node) -> Node {
    if is_negated { Node::Not(Box::new(node)) } else { node }
}

fn not_allowed(expression: &Expr) -> Error {
    let what = "properties, literals, AND, OR, NOT, =, <>, <, <=, >, >=, IN, BETWEEN, LIKE, IS NULL, + - * / % & | ^";
    wrong_at(expression, format!("{expression} is not possible here; possible are {what}"))
}
