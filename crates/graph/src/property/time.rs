//! Dates and times of day as numbers, and as ISO 8601 text.
//!
//! `jiff` knows the calendar from the year -9999 to 9999. Dates of 32 bits and timestamps of 64 bits reach further, so
//! years are moved by whole cycles of the calendar first: the proleptic Gregorian calendar repeats after 400 years.

use std::fmt;

use jiff::SignedDuration;
use jiff::civil::Date;

/// Microseconds of a day.
pub const MICROS_PER_DAY: i64 = 86_400_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
const YEARS_PER_CYCLE: i64 = 400;
const DAYS_PER_CYCLE: i64 = 146_097;
/// The first day of the cycle that `jiff` computes with, and its distance from 1970-01-01.
const CYCLE: Date = jiff::civil::date(2000, 1, 1);
const CYCLE_DAYS: i64 = 10_957;

/// The days from 1970-01-01 to a day of the calendar; `None` if there is no such day.
pub fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let (cycles, year) = ((year - 2000).div_euclid(YEARS_PER_CYCLE), 2000 + (year - 2000).rem_euclid(YEARS_PER_CYCLE));
    let date = Date::new(year as i16, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    Some(date.duration_since(CYCLE).as_secs() / SECONDS_PER_DAY + CYCLE_DAYS + cycles * DAYS_PER_CYCLE)
}

/// The year, month and day of a number of days since 1970-01-01.
///
/// ```
/// use anden_graph::property::{calendar_of, days_of};
///
/// assert_eq!(calendar_of(15_461), (2012, 5, 1));
/// assert_eq!(days_of(2012, 5, 1), Some(15_461));
/// ```
pub fn calendar_of(days: i64) -> (i64, i8, i8) {
    let (cycles, days) =
        ((days - CYCLE_DAYS).div_euclid(DAYS_PER_CYCLE), (days - CYCLE_DAYS).rem_euclid(DAYS_PER_CYCLE));
    // Never saturates, because the days stay within one cycle.
    let date = CYCLE.saturating_add(SignedDuration::from_secs(days * SECONDS_PER_DAY));
    (i64::from(date.year()) + cycles * YEARS_PER_CYCLE, date.month(), date.day())
}

/// Writes `2024-02-29`. Years outside 0 to 9999 get a sign.
pub(super) fn write_date(f: &mut fmt::Formatter<'_>, days: i64) -> fmt::Result {
    let (year, month, day) = calendar_of(days);
    match year {
        0..=9999 => write!(f, "{year:04}-{month:02}-{day:02}"),
        _ => write!(f, "{year:+05}-{month:02}-{day:02}"),
    }
}

/// Writes `2024-02-29T12:30:00.5Z`, with up to six digits of a second and no trailing zeros.
pub(super) fn write_timestamp(f: &mut fmt::Formatter<'_>, micros: i64) -> fmt::Result {
    write_date(f, micros.div_euclid(MICROS_PER_DAY))?;
    // Euclidean division, so that times before 1970 count forward from midnight.
    let of_day = micros.rem_euclid(MICROS_PER_DAY);
    let (seconds, mut fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    write!(f, "T{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    if fraction > 0 {
        let mut width = 6;
        while fraction % 10 == 0 {
            (fraction, width) = (fraction / 10, width - 1);
        }
        write!(f, ".{fraction:0width$}")?;
    }
    f.write_str("Z")
}

/// The unparsed rest of a text.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.0.first() == Some(&byte);
        self.0 = &self.0[usize::from(is_next)..];
        is_next
    }

    fn takes_one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        bytes.iter().copied().find(|&byte| self.takes(byte))
    }

    /// Parses a number with a number of digits in this range.
    fn number(&mut self, num_digits: std::ops::RangeInclusive<usize>) -> Option<i64> {
        let len = self.0.iter().take(*num_digits.end()).take_while(|byte| byte.is_ascii_digit()).count();
        if len < *num_digits.start() {
            return None;
        }
        let (digits, rest) = self.0.split_at(len);
        self.0 = rest;
        // `num_digits` bounds the number, so the product cannot overflow.
        Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    fn number_below(&mut self, bound: i64) -> Option<i64> {
        self.number(2..=2).filter(|&number| number < bound)
    }

    fn date(&mut self) -> Option<i64> {
        // Eight digits exceed the years that 32-bit days can express.
        let year = match self.takes_one_of(b"+-") {
            None => self.number(4..=4)?,
            Some(b'+') => self.number(4..=8)?,
            Some(_) => -self.number(4..=8)?,
        };
        let month = self.takes(b'-').then(|| self.number(2..=2))??;
        let day = self.takes(b'-').then(|| self.number(2..=2))??;
        days_of(year, month, day)
    }

    /// Parses microseconds since midnight. The seconds may be missing.
    fn time_of_day(&mut self) -> Option<i64> {
        let hour = self.number_below(24)?;
        let minute = self.takes(b':').then(|| self.number_below(60))??;
        let mut micros = (hour * 60 + minute) * 60_000_000;
        if self.takes(b':') {
            // Timestamps have no leap seconds, so second 60 is refused.
            micros += self.number_below(60)? * 1_000_000;
            if self.takes(b'.') {
                let len = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let (digits, rest) = self.0.split_at(len);
                self.0 = rest;
                // A fraction below a microsecond would be lost, so the text is not a timestamp.
                if digits.is_empty() || digits.iter().skip(6).any(|&digit| digit != b'0') {
                    return None;
                }
                let digit = |place: usize| digits.get(place).map_or(0, |digit| i64::from(digit - b'0'));
                micros += (0..6).fold(0, |fraction, place| fraction * 10 + digit(place));
            }
        }
        Some(micros)
    }

    /// Parses the offset from UTC in microseconds. No text means UTC.
    fn zone(&mut self) -> Option<i64> {
        if self.0.is_empty() || self.takes(b'Z') || self.takes(b'z') {
            return Some(0);
        }
        let sign = if self.takes_one_of(b"+-")? == b'+' { 1 } else { -1 };
        let hours = self.number_below(24)?;
        let minutes = if self.takes(b':') || !self.0.is_empty() { self.number_below(60)? } else { 0 };
        Some(sign * (hours * 60 + minutes) * 60_000_000)
    }
}

/// Parses `2024-02-29` as days since 1970-01-01.
pub(super) fn parse_date(text: &[u8]) -> Option<i32> {
    let mut rest = Rest(text);
    let days = rest.date()?;
    if rest.0.is_empty() { i32::try_from(days).ok() } else { None }
}

/// Parses a date, with or without a time and a zone, as microseconds since 1970. The default zone is UTC.
pub(super) fn parse_timestamp(text: &[u8]) -> Option<i64> {
    let mut rest = Rest(text);
    let midnight = rest.date()?.checked_mul(MICROS_PER_DAY);
    if rest.0.is_empty() {
        return midnight;
    }
    rest.takes_one_of(b"T t")?;
    let micros = rest.time_of_day()?;
    let ahead = rest.zone()?;
    if !rest.0.is_empty() {
        return None;
    }
    // The first representable days start before the first representable microsecond, so `midnight` may have overflowed.
    let days = i128::from(Rest(text).date()?) * i128::from(MICROS_PER_DAY);
    i64::try_from(days + i128::from(micros - ahead)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_the_calendar_agree() {
        let days_of = |year, month: i8, day: i8| days_of(year, month.into(), day.into()).unwrap();
        assert_eq!((days_of(1970, 1, 1), days_of(2000, 3, 1), days_of(1969, 12, 31)), (0, 11_017, -1));
        let (mut date, mut expected) = ((-800, 1, 1), days_of(-800, 1, 1));
        while date.0 < 2400 {
            assert_eq!((days_of(date.0, date.1, date.2), calendar_of(expected)), (expected, date));
            let is_leap = date.0 % 4 == 0 && (date.0 % 100 != 0 || date.0 % 400 == 0);
            let last = [31, 28 + i8::from(is_leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][date.1 as usize - 1];
            expected += 1;
            date = match date {
                (year, 12, 31) => (year + 1, 1, 1),
                (year, month, day) if day == last => (year, month + 1, 1),
                (year, month, day) => (year, month, day + 1),
            };
        }
        for days in [i32::MIN, i32::MIN + 1, i32::MAX] {
            let (year, month, day) = calendar_of(days.into());
            assert_eq!(days_of(year, month, day), days.into());
        }
    }

    #[test]
    fn invalid_dates_do_not_parse() {
        assert_eq!(parse_date(b"2024-02-29"), Some(19_782));
        assert_eq!(parse_date(b"-0001-12-31"), Some(-719_529));
        assert_eq!(parse_date(b"+12345-01-01").map(i64::from), days_of(12_345, 1, 1));
        let others = ["2023-02-29", "2024-13-01", "2024-00-01", "2024-01-00", "2024-1-01", "24-01-01", "2024-01-01 "];
        let more = ["", "2024", "2024-01", "2024/01/01", "12345-01-01", "+99999999-01-01", "2024-01-32"];
        others.iter().chain(&more).for_each(|text| assert_eq!(parse_date(text.as_bytes()), None, "{text}"));
    }

    #[test]
    fn times_have_zones_and_fractions() {
        let day = 19_782 * MICROS_PER_DAY;
        let expected = day + (12 * 60 + 30) * 60_000_000;
        let parse = |text: &str| parse_timestamp(text.as_bytes());
        for text in
            ["2024-02-29T12:30Z", "2024-02-29 12:30:00", "2024-02-29t14:30:00.000+02:00", "2024-02-29T08:00-0430"]
        {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
        assert_eq!(parse("2024-02-29"), Some(day));
        assert_eq!(parse("2024-02-29T00:00:00.000001Z"), Some(day + 1));
        assert_eq!(parse("2024-02-29T00:00:00.120000000+00"), Some(day + 120_000));
        let others = ["2024-02-29T", "2024-02-29T1:30", "2024-02-29T24:00", "2024-02-29T12:60", "2024-02-29T12:30:60"];
        let more = ["2024-02-29T12:30:00.", "2024-02-29T12:30:00.0000001", "2024-02-29T12:30+", "2024-02-29X12:30"];
        others.iter().chain(&more).for_each(|text| assert_eq!(parse(text), None, "{text}"));
        assert_eq!(parse("+99999999-01-01T00:00Z"), None);
    }
}
