//! Reading a stretch at a time, bounded in number and in bytes.

use std::ops::Deref;

/// How much is read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize {
    /// So many at the most …
    pub count: usize,
    /// … and so many bytes of what people wrote; one is read whatever its size.
    pub bytes: usize,
}

impl PageSize {
    /// So many, of any size: for what is small.
    pub fn of(count: usize) -> Self {
        Self { count, bytes: usize::MAX }
    }
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// In order.
    pub items: Vec<T>,
    /// Whether there was more behind it.
    pub more: bool,
}

impl<T> Page<T> {
    /// A page with nothing behind it.
    pub fn last(items: Vec<T>) -> Self {
        Self { items, more: false }
    }
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self::last(Vec::new())
    }
}

impl<T> Deref for Page<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> IntoIterator for Page<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

/// A page in the making: takes one after the other until it is full.
#[derive(Debug)]
pub struct Filling {
    left: PageSize,
    begun: bool,
}

impl Filling {
    /// An empty page.
    pub fn new(size: PageSize) -> Self {
        Self { left: size, begun: false }
    }

    /// Whether one more of so many bytes belongs to the page; with the first that
    /// does not, the page is full.
    pub fn takes(&mut self, bytes: usize) -> bool {
        let fits = !self.begun || (self.left.count > 0 && bytes <= self.left.bytes);
        self.begun = true;
        self.left = if fits {
            PageSize {
                count: self.left.count.saturating_sub(1),
                bytes: self.left.bytes.saturating_sub(bytes),
            }
        } else {
            PageSize { count: 0, bytes: 0 }
        };
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_full_by_number_or_by_bytes_and_never_empty() {
        let fill = |size: PageSize, sizes: &[usize]| {
            let mut page = Filling::new(size);
            sizes.iter().take_while(|bytes| page.takes(**bytes)).count()
        };
        let size = PageSize { count: 3, bytes: 100 };
        assert_eq!(fill(size, &[1, 1, 1, 1]), 3);
        assert_eq!(fill(size, &[60, 40, 1]), 2);
        assert_eq!(fill(size, &[60, 41, 1]), 1, "what does not fit ends it, though a smaller one would");
        assert_eq!(fill(size, &[1_000, 0]), 2, "one is read whatever its size");
        assert_eq!(fill(size, &[1_000, 1]), 1);
        assert_eq!(fill(PageSize::of(2), &[usize::MAX, 7, 7]), 1);
    }
}
