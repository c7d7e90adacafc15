//! Sizes in bytes for people: `12.4 MiB`.
//!
//! `--memory` accepts sizes in this form. Needs are therefore rounded up and budgets down, so that a message never
//! shows a budget that covers the need.

const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

/// Formats a size with one decimal, rounded to nearest: `12.4 MiB`.
pub fn size(num_bytes: u64) -> String {
    shown(num_bytes, |numerator, unit| (numerator + unit / 2) / unit)
}

/// Formats a size with one decimal, rounded up: a budget of this size suffices for `num_bytes`.
pub fn size_at_least(num_bytes: u64) -> String {
    shown(num_bytes, u128::div_ceil)
}

/// Formats a size with one decimal, rounded down: `num_bytes` suffice for a need of this size.
pub fn size_at_most(num_bytes: u64) -> String {
    shown(num_bytes, |numerator, unit| numerator / unit)
}

/// Parses a size in bytes: `800`, `64K`, `512M`, `4G`, `1T`. Also accepts `4GB`, `4GiB` and a blank before the unit, so
/// that sizes from messages can be pasted. `None` for other text and for 0.
pub fn parse_size(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    let bytes = match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(1 << shift),
        // A whole number that does not parse is too large, so it is not tried as a fraction.
        Err(_) if !number.contains('.') => None,
        Err(_) => number.parse::<f64>().ok().map(|x| (x * (1_u64 << shift) as f64) as u64),
    };
    bytes.filter(|&n| n > 0)
}

/// `divide` returns tenths of a unit.
fn shown(num_bytes: u64, divide: impl Fn(u128, u128) -> u128) -> String {
    let unit = (num_bytes.max(1).ilog2() / 10).min(UNITS.len() as u32 - 1);
    if unit == 0 {
        return format!("{num_bytes} B");
    }
    let tenths = divide(u128::from(num_bytes) * 10, 1 << (10 * unit));
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit_and_one_decimal() {
        let sizes = [0, 1, 1023, 1024, 1536, 52_428_800, 5 << 30, 3 << 40, u64::MAX].map(size);
        let expected =
            ["0 B", "1 B", "1023 B", "1.0 KiB", "1.5 KiB", "50.0 MiB", "5.0 GiB", "3.0 TiB", "16777216.0 TiB"];
        assert_eq!(sizes, expected);
    }

    #[test]
    fn needs_are_rounded_up_and_budgets_down() {
        let (exact, more) = (50 << 20, (50 << 20) + 1);
        assert_eq!([size_at_least(exact), size_at_most(exact), size(exact)], ["50.0 MiB"; 3]);
        assert_eq!([size_at_least(more), size_at_most(more), size(more)], ["50.1 MiB", "50.0 MiB", "50.0 MiB"]);
        assert_eq!(size_at_least((1 << 20) - 1), "1024.0 KiB");
    }

    #[test]
    fn sizes_are_parsed() {
        assert_eq!(parse_size("512M"), Some(512 << 20));
        assert_eq!(parse_size("4G"), Some(4 << 30));
        assert_eq!(parse_size("4GiB"), Some(4 << 30));
        assert_eq!(parse_size("1.5k"), Some(1536));
        assert_eq!(parse_size("800"), Some(800));
        assert_eq!(parse_size("104.9 MiB"), Some(109_995_622));
        for bad in ["", "M", "0", "-1G", "4Q", "1..2", "4bb", "4ib", "4ii", "99999999999999999999G"] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }

    #[test]
    fn shown_needs_are_taken_back() {
        let mut needed = 1_u64;
        // Sizes on both sides of each unit boundary.
        while needed < 1 << 50 {
            for needed in [needed - 1, needed, needed + 1].into_iter().filter(|&needed| needed > 0) {
                let shown = size_at_least(needed);
                let given = parse_size(&shown).unwrap_or_else(|| panic!("{shown}"));
                assert!(given >= needed && given - needed <= needed / 10 + 1, "{needed}: {shown} is {given}");
                assert_eq!(parse_size(&shown.replace(' ', "")), Some(given));
            }
            needed += needed / 13 + 1;
        }
    }
}
