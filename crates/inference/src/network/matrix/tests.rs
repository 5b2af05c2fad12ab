use super::*;

fn blocks_of(kind: Kind, bytes: &[u8]) -> Vec<Block> {
    let mut all = Vec::new();
    blocks(kind, bytes, &mut Vec::new(), &mut all);
    all
}

fn read(blocks: Vec<Block>) -> Vec<f32> {
    let mut values = Vec::new();
    Matrix::new(BLOCK * blocks.len(), &blocks).read(0, &mut values);
    values
}

/// Distances by the range of the block, from what the file says.
fn off(kind: Kind, bytes: &[u8]) -> f32 {
    let mut wanted = Vec::new();
    kind.read(bytes, &mut wanted);
    let most = wanted.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let pairs = read(blocks_of(kind, bytes)).into_iter().zip(wanted);
    pairs.map(|(got, wanted)| (got - wanted).abs() / most).fold(0.0, f32::max)
}

#[test]
fn weights_of_four_and_eight_bits_stay_what_they_are() {
    // All sixteen steps are in it.
    let steps: Vec<u8> = (0..16).map(|n| n * 17).collect();
    let (scale, least) = (0x2E66_u16.to_le_bytes(), 0xB123_u16.to_le_bytes());
    let one = [&scale[..], &least, &steps].concat();
    assert!(off(Kind::Q4_1, &one) < 1e-6);
    let zero = [&scale[..], &steps].concat();
    assert!(off(Kind::Q4_0, &zero) < 1e-6);
    let eight: Vec<u8> = (0..32).map(|n| n * 8).collect();
    assert_eq!(off(Kind::Q8_0, &[&scale[..], &eight].concat()), 0.0);
}

#[test]
fn other_weights_lose_less_than_a_step() {
    let bytes: Vec<u8> =
        (0..64).flat_map(|n| (((n * n * 37) % 101) as f32 - 30.5).to_le_bytes()).collect();
    assert!(off(Kind::F32, &bytes) < 1.0 / 255.0);
}

#[test]
fn equal_weights_and_none_are_no_division_by_zero() {
    for value in [0.0_f32, -3.25, 1e-40, f32::MAX] {
        let bytes: Vec<u8> = (0..32).flat_map(|_| value.to_le_bytes()).collect();
        assert_eq!(read(blocks_of(Kind::F32, &bytes)), [value; 32]);
    }
    assert!(read(blocks_of(Kind::F32, &[0xFF; 128])).iter().all(|value| value.is_nan()));
}
