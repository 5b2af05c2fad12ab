use super::*;

/// Bytes that use all bits, but for scales, which are to be moderate numbers.
fn bytes(size: usize, halves: &[usize]) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..2 * size).map(|i| (i * i * 7 + i * 37 + 11) as u8).collect();
    for block in 0..2 {
        for (n, at) in halves.iter().enumerate() {
            let half = [0x2E66_u16, 0xB123][(n + block) % 2].to_le_bytes();
            bytes[block * size + at..][..2].copy_from_slice(&half);
        }
    }
    bytes
}

/// What candle-core 0.11 makes of the same bytes: the sum of all values, each by its place, the first of
/// them and the last.
#[test]
fn all_types_are_read_as_others_read_them() {
    for (kind, halves, want, [first, last]) in [
        (Kind::F16, &[0][..], -0.2210693359375, [0.099975586, -0.16052246]),
        (Kind::BF16, &[0], -4.69162841909565e-9, [5.2295945e-11, -2.3719622e-9]),
        (Kind::Q4_0, &[0], -140.7767333984375, [-0.6998291, -0.16052246]),
        (Kind::Q4_1, &[0, 2], -1552.068603515625, [1.3391113, -0.54211426]),
        (Kind::Q5_0, &[0], -155.8004150390625, [0.49987793, -2.086792]),
        (Kind::Q5_1, &[0, 2], -3753.40380859375, [1.7390137, -2.9499512]),
        (Kind::Q8_0, &[0], 3256.40234375, [11.297241, -19.423218]),
        (Kind::Q2K, &[80, 82], -207952.29516601563, [3.2991943, -0.49987793]),
        (Kind::Q3K, &[108], -700.1854248046875, [8.098022, 3.5314941]),
        (Kind::Q4K, &[0, 2], -3649650.796875, [24.682617, -57.86133]),
        (Kind::Q5K, &[0, 2], -5853388.279296875, [48.676758, -18.493896]),
        (Kind::Q6K, &[208], -1272851.5009765625, [-143.06506, -66.4563]),
    ] {
        let (count, size) = kind.block();
        let mut values = Vec::new();
        kind.read(&bytes(size, halves), &mut values);
        assert_eq!(values.len(), 2 * count, "{kind:?}");
        let weigh = |(at, value): (usize, &f32)| f64::from(*value) * (at + 1) as f64;
        let sum: f64 = values.iter().enumerate().map(weigh).sum();
        assert!((sum - want).abs() <= want.abs() * 1e-6, "{kind:?}: {sum} {want}");
        for (got, want) in [(values[0], first), (values[values.len() - 1], last)] {
            let near: f32 = want;
            assert!((got - near).abs() <= near.abs() * 1e-6, "{kind:?}: {got} {near}");
        }
    }
}

#[test]
fn floats_of_sixteen_bits_are_read_to_their_limits() {
    for (bits, want) in [
        (0x0000_u16, 0.0),
        (0x0001, 1.0 / 16_777_216.0),
        (0x03FF, 1023.0 / 16_777_216.0),
        (0x0400, 1.0 / 16_384.0),
        (0x3C00, 1.0),
        (0xC100, -2.5),
        (0x7BFF, 65_504.0),
        (0x7C00, f32::INFINITY),
        (0xFC00, f32::NEG_INFINITY),
    ] {
        assert_eq!(half(&bits.to_le_bytes(), 0), want, "{bits:x}");
    }
    assert!(half(&0x7E00_u16.to_le_bytes(), 0).is_nan());
}
