//! Packet numbers: 64 bits, of which a packet carries the low 32.

/// The packet number whose low half is `pn`: the one nearest to the next after `newest`, the highest number that was
/// authenticated; `None`: none was. Of two that are as near the higher one. Source: RFC 9000 section 17.1 and appendix A.3.
#[must_use]
pub fn expand(newest: Option<u64>, pn: u32) -> u64 {
    let expected = newest.map_or(0, |newest| newest.saturating_add(1));
    let near = (expected & !LOW) | u64::from(pn);
    let ahead = near.saturating_sub(expected);
    if ahead > HALF {
        near.checked_sub(TURN).unwrap_or(near)
    } else if expected.saturating_sub(near) >= HALF {
        near.checked_add(TURN).unwrap_or(near)
    } else {
        near
    }
}

/// The low half of a packet number, which is sent.
#[must_use]
pub fn truncate(pn: u64) -> u32 {
    u32::try_from(pn & LOW).unwrap_or_default()
}

const LOW: u64 = 0xffff_ffff;
const TURN: u64 = 1 << 32;
const HALF: u64 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn newest() -> impl Strategy<Value = Option<u64>> {
        let near = (0..=4_u64, -5..=5_i64).prop_map(|(turn, off)| (turn << 31).wrapping_add_signed(off));
        let top = (0..10_u64).prop_map(|below| u64::MAX - below);
        prop::option::of(prop_oneof![near, top, any::<u64>(), 0..1_u64 << 48])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn it_is_the_nearest_with_this_low_half(
            newest in newest(),
            pn in prop_oneof![0..5_u32, any::<u32>(), u32::MAX - 5..=u32::MAX],
        ) {
            let expected = i128::from(newest.map_or(0, |newest| newest.saturating_add(1)));
            let all = (expected >> 32) - 2..=(expected >> 32) + 2;
            let numbers = all.map(|turn| (turn << 32) + i128::from(pn));
            let numbers = numbers.filter(|number| (0..=i128::from(u64::MAX)).contains(number));
            let nearest = numbers.min_by_key(|number| ((number - expected).abs(), -number)).unwrap();
            prop_assert_eq!(i128::from(expand(newest, pn)), nearest);
        }
    }
}
