//! One-word verdicts on a part of a comparison and on the whole.

use std::fmt;

/// A verdict in one word, in ascending order: of two parts, the later verdict decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Word {
    /// Everything was compared, and is equal.
    Equal,
    /// Everything was compared and all that can be judged is equal; final map contents depend
    /// on an order of writes that is not known.
    OrderUnknown,
    /// On the whole: some parts were not compared, the others are equal.
    PartlyCompared,
    /// The part was not compared; on the whole: no program was.
    NothingCompared,
    /// Part of the recording is missing.
    Incomplete,
    /// A difference.
    Different,
}

impl Word {
    /// All verdicts, in ascending order.
    pub const ALL: [Self; 6] = [
        Self::Equal,
        Self::OrderUnknown,
        Self::PartlyCompared,
        Self::NothingCompared,
        Self::Incomplete,
        Self::Different,
    ];

    /// The word as it is printed: `order unknown`.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::OrderUnknown => "order unknown",
            Self::PartlyCompared => "partly compared",
            Self::NothingCompared => "nothing compared",
            Self::Incomplete => "incomplete",
            Self::Different => "different",
        }
    }

    /// The word as JSON has it: `order_unknown`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::OrderUnknown => "order_unknown",
            Self::PartlyCompared => "partly_compared",
            Self::NothingCompared => "nothing_compared",
            Self::Incomplete => "incomplete",
            Self::Different => "different",
        }
    }

    /// Whether everything was compared, nothing is missing, and all that can be judged is
    /// equal: exit code 0.
    #[must_use]
    pub fn is_fine(self) -> bool {
        self <= Self::OrderUnknown
    }

    /// The verdict on a whole of these parts; [`NothingCompared`](Self::NothingCompared) if no
    /// program was compared.
    #[must_use]
    pub fn whole(
        programs: impl IntoIterator<Item = Self>,
        others: impl IntoIterator<Item = Self>,
    ) -> Self {
        let (mut worst, mut is_compared, mut has_gap) = (Self::Equal, false, false);
        let mut add = |word: Self, is_program: bool| match word {
            Self::NothingCompared => has_gap = true,
            word => {
                worst = worst.max(word);
                is_compared |= is_program;
            }
        };
        programs.into_iter().for_each(|word| add(word, true));
        others.into_iter().for_each(|word| add(word, false));
        match worst {
            Self::Incomplete | Self::Different => worst,
            _ if !is_compared => Self::NothingCompared,
            _ if has_gap => Self::PartlyCompared,
            worst => worst,
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::Word::{self, Different, Equal, Incomplete, NothingCompared, OrderUnknown};

    /// A whole is equal only if each part is, and one of them is a program.
    #[test]
    fn a_whole_is_no_better_than_any_part() {
        for program in Word::ALL {
            for other in Word::ALL {
                let whole = Word::whole([program, Equal], [other, Equal]);
                let parts = [program, other];
                assert_eq!(whole == Equal, parts == [Equal; 2], "{parts:?}: {whole}");
                assert_eq!(
                    whole.is_fine(),
                    parts.iter().all(|part| part.is_fine()),
                    "{parts:?}: {whole}"
                );
                assert_eq!(whole == Different, parts.contains(&Different), "{parts:?}");
            }
        }
        assert_eq!(
            Word::whole([Equal, NothingCompared], []),
            Word::PartlyCompared
        );
        assert_eq!(
            Word::whole([Equal], [NothingCompared]),
            Word::PartlyCompared
        );
        assert_eq!(
            Word::whole([OrderUnknown], [NothingCompared]),
            Word::PartlyCompared
        );
        assert_eq!(Word::whole([], [Equal]), NothingCompared);
        assert_eq!(Word::whole([NothingCompared], [Equal]), NothingCompared);
        assert_eq!(Word::whole([NothingCompared], [Different]), Different);
        assert_eq!(Word::whole([], [Incomplete]), Incomplete);
    }

    #[test]
    fn only_what_was_compared_is_fine() {
        let fine = Word::ALL.iter().filter(|word| word.is_fine());
        assert_eq!(fine.collect::<Vec<_>>(), [&Equal, &OrderUnknown]);
    }
}
