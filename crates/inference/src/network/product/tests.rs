use super::*;
use crate::network::lanes::Portable;

fn matrix(rows: usize, columns: usize) -> Matrix {
    let block = |at: usize| Block {
        scale: 0.01 + (at % 5) as f32 / 100.0,
        offset: (at % 3) as f32 / 10.0 - 0.1,
        quants: std::array::from_fn(|n| ((at * 31 + n * 17) % 256) as u8 as i8),
    };
    let blocks: Vec<Block> = (0..rows * columns / BLOCK).map(block).collect();
    Matrix::new(columns, &blocks)
}

fn inputs(rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns).map(|at| ((at * 29 % 41) as f32 - 20.0) / 16.0).collect()
}

fn plain(matrix: &Matrix, inputs: &[f32]) -> Vec<f64> {
    let mut sums = Vec::new();
    for input in inputs.chunks(matrix.columns()) {
        for row in 0..matrix.rows() {
            let mut weights = Vec::new();
            matrix.read(row, &mut weights);
            sums.push(weights.iter().zip(input).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum());
        }
    }
    sums
}

#[track_caller]
fn assert_alike(got: &[f32], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((f64::from(*got) - want).abs() < 1e-3, "{got} {want}");
    }
}

#[test]
fn products_are_right_for_any_number_of_rows() {
    for rows in [1, 2, 15, 16, 17, 50, 131] {
        let matrix = matrix(rows, 96);
        for inputs in (1..=9).map(|rows| inputs(rows, 96)) {
            assert_alike(&matrix.product(&inputs), &plain(&matrix, &inputs));
        }
    }
}

#[test]
fn gates_let_through_what_is_beside_them() {
    let matrix = matrix(128, 64);
    let inputs = inputs(7, 64);
    let pairs = plain(&matrix, &inputs);
    let gated = pairs.chunks(2).map(|pair| pair[0] / (1.0 + (-pair[0]).exp()) * pair[1]);
    assert_alike(&matrix.gated_product(&inputs), &gated.collect::<Vec<_>>());
}

/// Otherwise an answer would depend on who asks at the same time.
#[test]
fn a_row_alone_has_the_very_same_products_as_among_others() {
    let matrix = matrix(67, 96);
    let inputs = inputs(9, 96);
    let alone: Vec<f32> = inputs.chunks(96).flat_map(|row| matrix.product(row)).collect();
    assert_eq!(matrix.product(&inputs), alone);
}

/// The instructions of this CPU are used elsewhere in these tests, if it has them.
#[test]
fn a_cpu_without_special_instructions_computes_the_same() {
    let matrix = matrix(48, 96);
    let inputs = inputs(3, 96);
    let mut output = vec![0.0; 3 * 48];
    Part::<false> {
        matrix: &matrix,
        inputs: Inputs { values: inputs.as_chunks().0, blocks: 3 },
        first: 0,
        output: output.chunks_mut(48).collect(),
    }
    .run(Portable);
    assert_alike(&output, &plain(&matrix, &inputs));
}
