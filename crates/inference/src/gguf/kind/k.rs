//! The K types: 256 values in groups of 16 or 32, whose scales are quantised themselves.

use super::half;

/// Two bits each; scale and offset of 16 values have four.
pub(super) fn two(block: &[u8], values: &mut Vec<f32>) {
    let (scales, quants) = (&block[..16], &block[16..80]);
    let (scale, least) = (half(block, 80), half(block, 82));
    for (group, both) in scales.iter().enumerate() {
        let (part, shift, side) = (group / 8, group % 8 / 2 * 2, group % 2);
        let step = scale * f32::from(both & 15);
        let offset = least * f32::from(both >> 4);
        let from = part * 32 + side * 16;
        let quants = quants[from..from + 16].iter().map(|byte| byte >> shift & 3);
        values.extend(quants.map(|q| step * f32::from(q) - offset));
    }
}

/// Two bits each and a third elsewhere; scales of 16 values have six.
pub(super) fn three(block: &[u8], values: &mut Vec<f32>) {
    let (thirds, quants, scales) = (&block[..32], &block[32..96], &block[96..108]);
    let scale = half(block, 108);
    for group in 0..16 {
        let low = if group < 8 { scales[group] & 15 } else { scales[group - 8] >> 4 };
        let high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
        let step = scale * (f32::from(low | high << 4) - 32.0);
        let (part, shift, side) = (group / 8, group % 8 / 2 * 2, group % 2);
        let from = part * 32 + side * 16;
        let third = group / 2;
        let bytes = quants[from..from + 16].iter().zip(&thirds[side * 16..]);
        let quants = bytes.map(|(low, high)| (low >> shift & 3) | (high >> third & 1) << 2);
        values.extend(quants.map(|q| step * (f32::from(q) - 4.0)));
    }
}

/// Scale and offset of 32 values have six bits, in an order of their own.
fn scale_and_offset(scales: &[u8], group: usize) -> (f32, f32) {
    let (scale, offset) = if group < 4 {
        (scales[group] & 63, scales[group + 4] & 63)
    } else {
        let both = scales[group + 4];
        ((both & 15) | scales[group - 4] >> 6 << 4, both >> 4 | scales[group] >> 6 << 4)
    };
    (scale.into(), offset.into())
}

pub(super) fn four(block: &[u8], values: &mut Vec<f32>) {
    let (scale, least) = (half(block, 0), half(block, 2));
    let (scales, quants) = (&block[4..16], &block[16..144]);
    for group in 0..8 {
        let (step, offset) = scale_and_offset(scales, group);
        let (step, offset) = (scale * step, least * offset);
        let quants = &quants[group / 2 * 32..][..32];
        let shift = group % 2 * 4;
        values.extend(quants.iter().map(|byte| step * f32::from(byte >> shift & 15) - offset));
    }
}

pub(super) fn five(block: &[u8], values: &mut Vec<f32>) {
    let (scale, least) = (half(block, 0), half(block, 2));
    let (scales, fifths, quants) = (&block[4..16], &block[16..48], &block[48..176]);
    for group in 0..8 {
        let (step, offset) = scale_and_offset(scales, group);
        let (step, offset) = (scale * step, least * offset);
        let bytes = quants[group / 2 * 32..][..32].iter().zip(fifths);
        let shift = group % 2 * 4;
        let quants = bytes.map(|(low, high)| (low >> shift & 15) | (high >> group & 1) << 4);
        values.extend(quants.map(|q| step * f32::from(q) - offset));
    }
}

/// Four bits each and two elsewhere; scales of 16 values have eight.
pub(super) fn six(block: &[u8], values: &mut Vec<f32>) {
    let (lows, highs, scales) = (&block[..128], &block[128..192], &block[192..208]);
    let scale = half(block, 208);
    for (group, step) in scales.iter().enumerate() {
        let (part, quarter, side) = (group / 8, group % 8 / 2, group % 2);
        let step = scale * f32::from(step.cast_signed());
        let low = &lows[part * 64 + quarter % 2 * 32 + side * 16..][..16];
        let high = &highs[part * 32 + side * 16..];
        let (low_shift, high_shift) = (quarter / 2 * 4, quarter * 2);
        let bytes = low.iter().zip(high);
        let quants =
            bytes.map(|(low, high)| (low >> low_shift & 15) | (high >> high_shift & 3) << 4);
        values.extend(quants.map(|q| step * (f32::from(q) - 32.0)));
    }
}
