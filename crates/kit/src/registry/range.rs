//! Parts of blobs and of uploads.

/// What a `Range` header asks of something of this size: the first byte and how many.
pub(super) fn asked(header: &str, size: u64) -> Option<Result<(u64, u64), ()>> {
    let spec = header.strip_prefix("bytes=")?;
    // Several ranges may be answered by the whole.
    let (first, last) = spec.split_once('-').filter(|_| !spec.contains(','))?;
    let range = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => (first, last.min(size.saturating_sub(1))),
        (Ok(first), Err(_)) if last.is_empty() => (first, size.saturating_sub(1)),
        (Err(_), Ok(count)) if first.is_empty() => {
            (size.saturating_sub(count), size.saturating_sub(1))
        }
        _ => return None,
    };
    Some(match range {
        (first, last) if first < size && first <= last => Ok((first, last - first + 1)),
        _ => Err(()),
    })
}

/// `Content-Range` of a chunk: its first and last byte.
pub(super) fn of_chunk(header: &str) -> Option<(u64, u64)> {
    let text = header.strip_prefix("bytes ").unwrap_or(header);
    let text = text.split_once('/').map_or(text, |(range, _)| range);
    let (first, last) = text.split_once('-')?;
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last).then_some((first, last))
}

/// What has been received, as uploads tell it.
pub(super) fn received(size: u64) -> String {
    format!("0-{}", size.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_the_part_that_is_there() {
        for (header, want) in [
            ("bytes=0-3", Some(Ok((0, 4)))),
            ("bytes=4-", Some(Ok((4, 6)))),
            ("bytes=8-100", Some(Ok((8, 2)))),
            ("bytes=-3", Some(Ok((7, 3)))),
            ("bytes=-30", Some(Ok((0, 10)))),
            ("bytes=10-", Some(Err(()))),
            ("bytes=3-2", None),
            ("bytes=0-1,3-4", None),
            ("lines=1-2", None),
        ] {
            assert_eq!(asked(header, 10), want, "{header}");
        }
        assert_eq!(asked("bytes=0-", 0), Some(Err(())));
    }

    #[test]
    fn chunks_are_told_in_two_ways() {
        assert_eq!(of_chunk("0-99"), Some((0, 99)));
        assert_eq!(of_chunk("bytes 5-9/*"), Some((5, 9)));
        assert_eq!(of_chunk("9-5"), None);
        assert_eq!(of_chunk(""), None);
    }
}
