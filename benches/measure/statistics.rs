//! Medians and means.

/// The number in the middle.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.as_slice() {
        [] => f64::NAN,
        numbers if numbers.len() % 2 == 1 => numbers[middle],
        numbers => f64::midpoint(numbers[middle - 1], numbers[middle]),
    }
}

/// The geometric mean, which is the same whichever way round ratios are taken.
pub fn geometric_mean(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let (count, sum) = numbers
        .into_iter()
        .fold((0_u32, 0.0), |(count, sum), number| {
            (count + 1, sum + number.ln())
        });
    (sum / f64::from(count)).exp()
}
