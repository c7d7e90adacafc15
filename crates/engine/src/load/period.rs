//! Periods of time, each of which becomes a snapshot.

use std::str::FromStr;

use anden_graph::property::{MICROS_PER_DAY, calendar_of, days_of};

const MICROS_PER_HOUR: i64 = MICROS_PER_DAY / 24;
/// Years that the name of a snapshot can express.
const YEARS: std::ops::RangeInclusive<i64> = 0..=9999;

/// Asks for a snapshot of each period of time. The text form is `COLUMN:PERIOD`.
///
/// ```
/// use anden_engine::{SnapshotBy, SnapshotPeriod};
///
/// let by = SnapshotBy { column: "time".into(), period: SnapshotPeriod::Month };
/// assert_eq!("time:month".parse(), Ok(by));
/// assert!("time".parse::<SnapshotBy>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotBy {
    /// The column of edges with a date or a timestamp.
    pub column: String,
    /// The length of the periods.
    pub period: SnapshotPeriod,
}

impl FromStr for SnapshotBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A column may have a colon in its name, and no period has one.
        let parts = text.rsplit_once(':').filter(|(column, _)| !column.is_empty());
        let known = |word: &str| SnapshotPeriod::ALL.iter().find(|(_, name)| *name == word);
        match parts.map(|(column, word)| (column, known(word))) {
            Some((column, Some(&(period, _)))) => Ok(Self { column: column.to_owned(), period }),
            _ => {
                let words = SnapshotPeriod::ALL.map(|(_, name)| name).join(", ");
                Err(format!("expected a column and one of {words}, as in time:month, found {text:?}"))
            }
        }
    }
}

/// The length of a period, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SnapshotPeriod {
    /// An hour, named as `2012-05-03T10`.
    Hour,
    /// A day, named as `2012-05-03`.
    Day,
    /// A week of ISO 8601, which begins on Monday, named as `2012-W18`.
    Week,
    /// A month, named as `2012-05`.
    Month,
}

impl SnapshotPeriod {
    /// All lengths, with the names that users type.
    pub const ALL: [(Self, &str); 4] =
        [(Self::Hour, "hour"), (Self::Day, "day"), (Self::Week, "week"), (Self::Month, "month")];

    /// The number of the period with this time, in microseconds since 1970. Later periods have larger numbers. `None`
    /// for years beyond 0 to 9999.
    pub(crate) fn number(self, micros: i64) -> Option<i32> {
        let days = micros.div_euclid(MICROS_PER_DAY);
        let (year, month, _) = calendar_of(days);
        let number = match self {
            Self::Hour => micros.div_euclid(MICROS_PER_HOUR),
            Self::Day => days,
            // 1970-01-01 was a Thursday, so day 4 was the first Monday.
            Self::Week => (days - 4).div_euclid(7),
            Self::Month => 12 * year + i64::from(month) - 1,
        };
        // The first and the last days of a year may belong to a week of another year.
        let year = if self == Self::Week { calendar_of(thursday(number)).0 } else { year };
        YEARS.contains(&year).then_some(number as i32)
    }

    /// The name of a period, as users type the time of a snapshot.
    pub(crate) fn name(self, number: i32) -> String {
        let number = i64::from(number);
        let date = |days: i64| {
            let (year, month, day) = calendar_of(days);
            format!("{year:04}-{month:02}-{day:02}")
        };
        match self {
            Self::Hour => format!("{}T{:02}", date(number.div_euclid(24)), number.rem_euclid(24)),
            Self::Day => date(number),
            Self::Week => {
                // A week belongs to the year of its Thursday.
                let year = calendar_of(thursday(number)).0;
                let week = (thursday(number) - first_day(year, 1)) / 7 + 1;
                format!("{year:04}-W{week:02}")
            }
            Self::Month => format!("{:04}-{:02}", number.div_euclid(12), number.rem_euclid(12) + 1),
        }
    }

    /// The last microsecond of a period.
    pub(crate) fn last_micro(self, number: i32) -> i64 {
        let next = i64::from(number) + 1;
        let end = match self {
            Self::Hour => next * MICROS_PER_HOUR,
            Self::Day => next * MICROS_PER_DAY,
            Self::Week => (7 * next + 4) * MICROS_PER_DAY,
            Self::Month => first_day(next.div_euclid(12), next.rem_euclid(12) + 1) * MICROS_PER_DAY,
        };
        end - 1
    }
}

/// The Thursday of a week, in days since 1970.
fn thursday(week: i64) -> i64 {
    7 * week + 7
}

/// The first day of a month, in days since 1970.
fn first_day(year: i64, month: i64) -> i64 {
    // Every month has a first day, so the default is never used.
    days_of(year, month, 1).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anden_snapshots::SnapshotTag;

    fn micros(text: &str) -> i64 {
        SnapshotTag::parse_as_of(text).unwrap()
    }

    #[test]
    fn times_have_periods() {
        for (period, time, name, next) in [
            (SnapshotPeriod::Hour, "2012-05-03T10:59:59.999999", "2012-05-03T10", "2012-05-03T11:00"),
            (SnapshotPeriod::Hour, "1969-12-31T23:30", "1969-12-31T23", "1970-01-01"),
            (SnapshotPeriod::Day, "1969-12-31T00:00", "1969-12-31", "1970-01-01"),
            (SnapshotPeriod::Day, "2012-02-29T23:59", "2012-02-29", "2012-03-01"),
            (SnapshotPeriod::Week, "2012-05-06T23:59", "2012-W18", "2012-05-07"),
            (SnapshotPeriod::Week, "2016-01-03", "2015-W53", "2016-01-04"),
            (SnapshotPeriod::Week, "2016-01-04", "2016-W01", "2016-01-11"),
            (SnapshotPeriod::Week, "2008-12-29", "2009-W01", "2009-01-05"),
            (SnapshotPeriod::Week, "1969-12-31", "1970-W01", "1970-01-05"),
            (SnapshotPeriod::Month, "2012-12-31T23:59:59", "2012-12", "2013-01-01"),
            (SnapshotPeriod::Month, "1969-02-01", "1969-02", "1969-03-01"),
        ] {
            let number = period.number(micros(time)).unwrap();
            assert_eq!((period.name(number), period.last_micro(number)), (name.into(), micros(next) - 1), "{time}");
            assert_eq!(period.number(period.last_micro(number)), Some(number), "{time}");
            assert_eq!(period.number(period.last_micro(number) + 1), Some(number + 1), "{time}");
        }
    }

    #[test]
    fn years_without_names_have_no_period() {
        for (period, _) in SnapshotPeriod::ALL {
            assert_eq!(period.number(i64::MIN), None);
            assert_eq!(period.number(micros("+10000-01-03")), None);
            assert!(period.number(micros("9999-12-31")).is_some());
        }
        // This Saturday is in the last week of the year before.
        assert_eq!(SnapshotPeriod::Week.number(micros("0000-01-01")), None);
        assert_eq!(
            SnapshotPeriod::Day.number(micros("0000-01-01")).map(|n| SnapshotPeriod::Day.name(n)).unwrap(),
            "0000-01-01"
        );
    }

    #[test]
    fn texts_name_a_column_and_a_period() {
        let by = |text: &str| text.parse::<SnapshotBy>();
        assert_eq!(by("a:b:week"), Ok(SnapshotBy { column: "a:b".into(), period: SnapshotPeriod::Week }));
        for text in ["", "time", "time:", ":month", "time:year", "time:Month"] {
            let error = by(text).unwrap_err();
            assert!(error.contains("hour, day, week, month") && error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
