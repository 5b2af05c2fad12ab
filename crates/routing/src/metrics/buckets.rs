//! The limits of histograms. Dashboards are made for these.

use prometheus_client::metrics::histogram::Histogram;

pub(super) fn duration() -> Histogram {
    Histogram::new([
        0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
        10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0, 600.0, 900.0,
        1200.0, 1800.0, 2700.0, 3600.0,
    ])
}

pub(super) fn scheduling() -> Histogram {
    Histogram::new([0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1])
}

pub(super) fn time_per_token() -> Histogram {
    Histogram::new([0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0])
}

pub(super) fn input_tokens() -> Histogram {
    Histogram::new(one_and_doubling(1_048_576))
}

pub(super) fn output_tokens() -> Histogram {
    Histogram::new(one_and_doubling(8_192))
}

pub(super) fn response_bytes() -> Histogram {
    Histogram::new(one_and_doubling(65_536))
}

pub(super) fn request_bytes() -> Histogram {
    Histogram::new(doubling(64, 1 << 30))
}

pub(super) fn ratio() -> Histogram {
    Histogram::new((0..=10).map(|tenths| f64::from(tenths) / 10.0))
}

pub(super) fn hit_bytes() -> Histogram {
    Histogram::new(std::iter::once(0.0).chain(doubling(16, 65_536)))
}

fn doubling(from: u32, to: u32) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(from), move |limit| limit.checked_mul(2).filter(|next| *next <= to))
        .map(f64::from)
}

/// With the misprint that dashboards have come to expect.
fn one_and_doubling(to: u32) -> impl Iterator<Item = f64> {
    let limits = doubling(8, to).map(|limit| if limit == 32_768.0 { 32_778.0 } else { limit });
    std::iter::once(1.0).chain(limits)
}
