//! Eight floats at once, by whichever instructions there are. The program is built for every CPU of its
//! kind, so what this one has is looked up while it runs.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m256;

#[cfg(target_arch = "x86_64")]
use pulp::x86::V3;

pub(super) const LANES: usize = 8;

pub(super) trait Lanes: Copy {
    type Vector: Copy;
    fn all(self, value: f32) -> Self::Vector;
    fn load(self, values: [f32; LANES]) -> Self::Vector;
    fn widen(self, values: [i8; LANES]) -> Self::Vector;
    /// `a * b + c`
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    fn store(self, vector: Self::Vector) -> [f32; LANES];
}

/// What the compiler makes of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

impl Lanes for Portable {
    type Vector = [f32; LANES];

    #[inline(always)]
    fn all(self, value: f32) -> Self::Vector {
        [value; LANES]
    }

    #[inline(always)]
    fn load(self, values: [f32; LANES]) -> Self::Vector {
        values
    }

    #[inline(always)]
    fn widen(self, values: [i8; LANES]) -> Self::Vector {
        values.map(f32::from)
    }

    #[inline(always)]
    fn mul_add(self, a: Self::Vector, b: Self::Vector, mut c: Self::Vector) -> Self::Vector {
        for ((a, b), c) in a.iter().zip(&b).zip(&mut c) {
            // Where there is no instruction for both, a function of the C library would be called.
            *c = if cfg!(target_arch = "aarch64") { a.mul_add(*b, *c) } else { a * b + *c };
        }
        c
    }

    #[inline(always)]
    fn store(self, vector: Self::Vector) -> [f32; LANES] {
        vector
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for V3 {
    type Vector = __m256;

    #[inline(always)]
    fn all(self, value: f32) -> Self::Vector {
        self.avx._mm256_set1_ps(value)
    }

    #[inline(always)]
    fn load(self, values: [f32; LANES]) -> Self::Vector {
        pulp::cast(values)
    }

    #[inline(always)]
    fn widen(self, values: [i8; LANES]) -> Self::Vector {
        let low: i64 = pulp::cast(values);
        let wide = self.avx2._mm256_cvtepi8_epi32(self.sse2._mm_set_epi64x(0, low));
        self.avx._mm256_cvtepi32_ps(wide)
    }

    #[inline(always)]
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        self.fma._mm256_fmadd_ps(a, b, c)
    }

    #[inline(always)]
    fn store(self, vector: Self::Vector) -> [f32; LANES] {
        pulp::cast(vector)
    }
}

/// Work that can be done by any lanes. What it calls must be inlined, or it is not vectorised.
pub(super) trait Work {
    fn run<L: Lanes>(self, lanes: L);
}

/// By the best there are.
pub(super) fn run(work: impl Work) {
    #[cfg(target_arch = "x86_64")]
    if let Some(lanes) = V3::try_new() {
        return lanes.vectorize(
            #[inline(always)]
            || work.run(lanes),
        );
    }
    work.run(Portable);
}
