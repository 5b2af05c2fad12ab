//! How weights are written: the types of ggml, each in blocks of bytes that stand for so many values.
//! The layouts are those of <https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h>.

mod k;

/// What of these types there is in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    F32,
    F16,
    BF16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
}

impl Kind {
    pub(super) fn of(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            10 => Self::Q2K,
            11 => Self::Q3K,
            12 => Self::Q4K,
            13 => Self::Q5K,
            14 => Self::Q6K,
            30 => Self::BF16,
            _ => return None,
        })
    }

    /// How many values a block stands for, and its bytes.
    pub(crate) fn block(self) -> (usize, usize) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::BF16 => (1, 2),
            Self::Q4_0 => (32, 18),
            Self::Q4_1 => (32, 20),
            Self::Q5_0 => (32, 22),
            Self::Q5_1 => (32, 24),
            Self::Q8_0 => (32, 34),
            Self::Q2K => (256, 84),
            Self::Q3K => (256, 110),
            Self::Q4K => (256, 144),
            Self::Q5K => (256, 176),
            Self::Q6K => (256, 210),
        }
    }

    /// The values of whole blocks, after what is there already.
    pub(crate) fn read(self, bytes: &[u8], values: &mut Vec<f32>) {
        let (_, size) = self.block();
        for block in bytes.chunks_exact(size) {
            match self {
                Self::F32 => values.push(f32::from_le_bytes(array(block, 0))),
                Self::F16 => values.push(half(block, 0)),
                Self::BF16 => values.push(brain(u16::from_le_bytes(array(block, 0)))),
                Self::Q4_0 => nibbles(&block[2..], half(block, 0), -8.0 * half(block, 0), values),
                Self::Q4_1 => nibbles(&block[4..], half(block, 0), half(block, 2), values),
                Self::Q5_0 => {
                    let scale = half(block, 0);
                    fives(&block[6..], array(block, 2), scale, -16.0 * scale, values);
                }
                Self::Q5_1 => {
                    fives(&block[8..], array(block, 4), half(block, 0), half(block, 2), values);
                }
                Self::Q8_0 => {
                    let scale = half(block, 0);
                    values.extend(block[2..].iter().map(|q| scale * f32::from(q.cast_signed())));
                }
                Self::Q2K => k::two(block, values),
                Self::Q3K => k::three(block, values),
                Self::Q4K => k::four(block, values),
                Self::Q5K => k::five(block, values),
                Self::Q6K => k::six(block, values),
            }
        }
    }
}

/// The lower halves of all bytes, then the upper ones.
fn nibbles(bytes: &[u8], scale: f32, offset: f32, values: &mut Vec<f32>) {
    let low = bytes.iter().map(|byte| byte & 15);
    let high = bytes.iter().map(|byte| byte >> 4);
    values.extend(low.chain(high).map(|q| scale * f32::from(q) + offset));
}

/// The same, with a fifth bit for each.
fn fives(bytes: &[u8], fifth: [u8; 4], scale: f32, offset: f32, values: &mut Vec<f32>) {
    let fifth = u32::from_le_bytes(fifth);
    let low = bytes.iter().map(|byte| byte & 15);
    let high = bytes.iter().map(|byte| byte >> 4);
    let whole = |(at, q): (usize, u8)| q | (u8::from(fifth >> at & 1 == 1) << 4);
    let whole = low.chain(high).enumerate().map(whole);
    values.extend(whole.map(|q| scale * f32::from(q) + offset));
}

/// Blocks are as long as their kind says.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

fn brain(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// A float of 16 bits.
pub(crate) fn half(bytes: &[u8], at: usize) -> f32 {
    let bits = u32::from(u16::from_le_bytes(array(bytes, at)));
    let (sign, rest) = (bits & 0x8000, bits & 0x7FFF);
    let value = match rest {
        // Infinite, or no number.
        0x7C00.. => f32::from_bits(0x7F80_0000 | (rest & 0x3FF) << 13),
        0x400.. => f32::from_bits((rest << 13) + (112 << 23)),
        // Below the smallest exponent.
        _ => rest as f32 / (1 << 24) as f32,
    };
    if sign == 0 { value } else { -value }
}

#[cfg(test)]
mod tests;
