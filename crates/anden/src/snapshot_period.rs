//! Periods of time that name a snapshot, such as `2012-05`.

use anden_snapshots::SnapshotTag;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 24 * 60 * 60 * MICROS_PER_SECOND;

/// A period, in microseconds since 1970 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    /// The first microsecond.
    pub start: i64,
    /// The first microsecond after the period.
    pub end: i64,
}

impl Period {
    /// Parses a month (`2012-05`), a week of ISO 8601 (`2012-W18`), a day, an hour (`2012-05-03T10`), a minute, a second
    /// or a microsecond; in UTC without a zone. `None` for other text. A year alone is the number of a snapshot.
    pub fn parse(text: &str) -> Option<Self> {
        let is_number = |part: &str, len: usize| part.len() == len && part.bytes().all(|b| b.is_ascii_digit());
        let (year, rest) = text.split_once('-')?;
        if !is_number(year, 4) {
            return None;
        }
        if let Some(week) = rest.strip_prefix('W') {
            return is_number(week, 2).then(|| Self::week(year, week))?;
        }
        if is_number(rest, 2) {
            let end = match rest {
                "12" => end_of_year(year)?,
                _ => start_of(&format!("{year}-{:02}-01", rest.parse::<u32>().ok()? + 1))?,
            };
            return Some(Self { start: start_of(&format!("{text}-01"))?, end });
        }
        match text.split_once(['T', ' ']) {
            None => start_of(text).map(|start| Self { start, end: start.saturating_add(MICROS_PER_DAY) }),
            Some((_, time)) if is_number(time, 2) => Self::within_day(&format!("{text}:00"), 3600 * MICROS_PER_SECOND),
            Some((_, time)) => {
                let clock = time.split(['Z', 'z', '+', '-']).next()?;
                let width = match (clock.matches(':').count(), clock.contains(['.', ','])) {
                    (1, _) => 60 * MICROS_PER_SECOND,
                    (_, false) => MICROS_PER_SECOND,
                    (_, true) => 1,
                };
                Self::within_day(text, width)
            }
        }
    }

    fn within_day(text: &str, width: i64) -> Option<Self> {
        start_of(text).map(|start| Self { start, end: start.saturating_add(width) })
    }

    /// The week with this number. January 4 is in week 1, and a week belongs to the year of its Thursday.
    fn week(year: &str, week: &str) -> Option<Self> {
        let january_4 = start_of(&format!("{year}-01-04"))? / MICROS_PER_DAY;
        // Monday is 0; 1970-01-01 was a Thursday.
        let weekday = (january_4 + 3).rem_euclid(7);
        let monday = january_4 - weekday + 7 * (week.parse::<i64>().ok()? - 1);
        let is_in_year = week != "00" && monday + 3 < end_of_year(year)? / MICROS_PER_DAY;
        is_in_year.then_some(Self { start: monday * MICROS_PER_DAY, end: (monday + 7) * MICROS_PER_DAY })
    }
}

/// The first microsecond after a year. The text of a date has no year after 9999, so the last day tells.
fn end_of_year(year: &str) -> Option<i64> {
    Some(start_of(&format!("{year}-12-31"))? + MICROS_PER_DAY)
}

/// The first microsecond of a date, or of a timestamp.
fn start_of(text: &str) -> Option<i64> {
    SnapshotTag::parse_as_of(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, start: &str, end: &str) {
        let expected = Period { start: start_of(start).unwrap(), end: start_of(end).unwrap() };
        assert_eq!(Period::parse(text), Some(expected), "{text}");
    }

    #[test]
    fn periods_end_where_the_next_begins() {
        check("2012-05", "2012-05-01", "2012-06-01");
        check("2012-12", "2012-12-01", "2013-01-01");
        check("1969-12-31", "1969-12-31", "1970-01-01");
        check("2012-02-29", "2012-02-29", "2012-03-01");
        check("2012-05-03T10", "2012-05-03T10:00", "2012-05-03T11:00");
        check("2012-05-03 23:59", "2012-05-03T23:59", "2012-05-04");
        check("2012-05-03T10:30:59Z", "2012-05-03T10:30:59Z", "2012-05-03T10:31:00Z");
        check("2012-05-03T10:30+02:00", "2012-05-03T08:30", "2012-05-03T08:31");
        check("2012-05-03T10:30:00.5", "2012-05-03T10:30:00.5", "2012-05-03T10:30:00.500001");
    }

    #[test]
    fn last_periods_of_the_calendar_have_an_end() {
        let (first, end) = (start_of("9999-12-01").unwrap(), start_of("9999-12-31").unwrap() + MICROS_PER_DAY);
        assert_eq!(Period::parse("9999-12"), Some(Period { start: first, end }));
        assert_eq!(Period::parse("9999-12-31"), Some(Period { start: end - MICROS_PER_DAY, end }));
        let monday = start_of("9999-12-27").unwrap();
        assert_eq!(Period::parse("9999-W52"), Some(Period { start: monday, end: monday + 7 * MICROS_PER_DAY }));
        assert_eq!(Period::parse("9999-W53"), None);
        assert_eq!(Period::parse("0000-12").map(|found| found.end), start_of("0001-01-01"));
    }

    #[test]
    fn weeks_belong_to_the_year_of_their_thursday() {
        check("2012-W18", "2012-04-30", "2012-05-07");
        check("2015-W53", "2015-12-28", "2016-01-04");
        check("2016-W01", "2016-01-04", "2016-01-11");
        check("1969-W01", "1968-12-30", "1969-01-06");
        check("2009-W01", "2008-12-29", "2009-01-05");
    }

    #[test]
    fn other_text_is_no_period() {
        for text in [
            "2012",
            "2012-13",
            "2012-00",
            "2012-5",
            "2012-W54",
            "2016-W53",
            "2012-W00",
            "2012-02-30",
            "2012-05-03T25",
            "monday",
            "",
            "-",
            "2012-05-03T",
            "2012-05x",
            "12-05",
            "2012-05-03T10:61",
            "é012-05",
        ] {
            assert_eq!(Period::parse(text), None, "{text}");
        }
    }
}
