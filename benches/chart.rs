//! The chart of the engines' times, as SVG.

use std::fmt::Write;

use crate::measure::host::Host;
use crate::measure::{Row, geometric_mean};
use crate::rows::goals::number;
use crate::rows::programs::Rows;
use crate::suite::columns::Column;

/// Pixels: of a bar with the space below it, above the first bar, and left of the bars.
const BAR: u32 = 26;
const TOP: u32 = 58;
const LEFT: u32 = 110;
/// Pixels of the longest bar.
const WIDEST: f64 = 480.0;

/// The time of each engine as a multiple of the kernel's, geometric mean over the twelve programs,
/// the fastest first, and the number of programs; none if the kernel has no times.
fn means(table: &[Row]) -> Option<(Vec<(Column, f64)>, usize)> {
    let twelve = |column| Rows(table).twelve(column, Column::Kernel);
    let programs = twelve(Column::Kernel).len();
    let means = Column::ALL.into_iter().filter_map(|column| {
        let ratios = twelve(column);
        let mean = || geometric_mean(ratios.iter().map(|(ratio, _)| *ratio));
        (ratios.len() == programs).then(|| (column, mean()))
    });
    let mut means: Vec<_> = means.collect();
    means.sort_by(|a, b| a.1.total_cmp(&b.1));
    (programs > 0).then_some((means, programs))
}

/// A bar for each engine that ran all of the twelve programs, the fastest first. Lengths are
/// logarithms: the longest and the shortest differ by a factor of hundreds. None if the kernel's
/// times are missing.
pub fn chart(table: &[Row], host: &Host) -> Option<String> {
    let (means, programs) = means(table)?;
    let (least, most) = (means.first()?.1, means.last()?.1);
    // The shortest bar is visible, too.
    let length = |mean: f64| ((mean / least).ln() + 0.5) / ((most / least).ln() + 0.5) * WIDEST;
    let bars = u32::try_from(means.len()).ok()?;
    let (width, height) = (LEFT + 580, TOP + BAR * bars + 10);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"10\" y=\"20\" font-weight=\"bold\">Time of a run, as a multiple of the kernel's \
         JIT (logarithmic)</text>\n\
         <text x=\"10\" y=\"40\" fill=\"#555\">Geometric mean over {programs} programs; {}</text>\n",
        host.short()
    );
    for (number_of, (column, mean)) in (0..).zip(&means) {
        let y = TOP + BAR * number_of;
        let is_ours = matches!(column, Column::Checked | Column::Interp | Column::Jit);
        let (fill, name) = match is_ours {
            true => ("#2563a8", format!("bpflab {}", column.title())),
            false => ("#9aa5b1", column.title().to_owned()),
        };
        let (text_y, length) = (y + 14, length(*mean));
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{text_y}\" text-anchor=\"end\">{name}</text>\
             <rect x=\"{LEFT}\" y=\"{y}\" width=\"{length:.0}\" height=\"18\" fill=\"{fill}\"/>\
             <text x=\"{:.0}\" y=\"{text_y}\">{}</text>",
            LEFT - 8,
            f64::from(LEFT) + length + 6.0,
            number(*mean),
        );
    }
    text.push_str("</svg>\n");
    Some(text)
}
