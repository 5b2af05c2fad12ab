use proptest::prelude::*;

use super::*;

#[test]
fn g25_sizes_are_printed_in_binary_units() {
    for (size, want) in [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        ((1 << 20) - 1, "1024 KiB"),
        (1 << 20, "1 MiB"),
        (9_094_593_249, "8.5 GiB"),
        (7 << 60, "7 EiB"),
    ] {
        assert_eq!(format_bytes(size).unwrap(), want);
    }
    for size in [-1, (7 << 60) + 1, i64::MAX] {
        assert!(format_bytes(size).is_err(), "{size}");
    }
}

#[test]
fn g25_claims_have_headroom_and_full_gibibytes() {
    for (size, percent, want) in [
        (9_094_593_249, 10, "10Gi"),
        (1 << 30, 0, "1Gi"),
        ((1 << 30) + 1, 0, "2Gi"),
        (1 << 30, 10, "2Gi"),
        (0, 10, "1Gi"),
    ] {
        assert_eq!(claim_quantity(size, percent), want, "{size} {percent}");
    }
}

proptest! {
    #[test]
    fn a_claim_always_holds_its_data(size in 0_u64..1 << 60, percent in 0_u32..200) {
        prop_assert!(claim_gib(size, percent) << 30 >= size);
    }
}
