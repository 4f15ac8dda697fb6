//! The bookmakers of a list of regions, from a table computed once.

use domain::{BookmakerSet, Catalogue, Region};

/// A set of regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Regions(u8);

impl Regions {
    pub(crate) fn insert(&mut self, region: Region) {
        self.0 |= 1 << (region as u8);
    }

    pub(crate) fn just(region: Region) -> Self {
        let mut regions = Self::default();
        regions.insert(region);
        regions
    }

    fn contains(self, region: Region) -> bool {
        self.0 & (1 << (region as u8)) != 0
    }

    /// The regions in a fixed order.
    pub(crate) fn iter(self) -> impl Iterator<Item = Region> {
        Region::ALL.into_iter().filter(move |region| self.contains(*region))
    }

    /// The bookmakers of these regions in a catalogue.
    pub(crate) fn bookmakers_in(self, catalogue: &Catalogue) -> BookmakerSet {
        catalogue.bookmakers_in(&self.iter().collect::<Vec<_>>())
    }
}

/// The requested bookmakers in the requested regions; a missing part does not restrict.
pub(crate) fn among(
    request: Option<BookmakerSet>,
    of_regions: Option<BookmakerSet>,
) -> BookmakerSet {
    match (request, of_regions) {
        (Some(request), Some(of_regions)) => request.intersection(of_regions),
        (Some(set), None) | (None, Some(set)) => set,
        (None, None) => BookmakerSet::default(),
    }
}

/// The bookmakers of every set of regions.
#[derive(Debug)]
pub(crate) struct RegionTable(Vec<BookmakerSet>);

impl RegionTable {
    pub(crate) fn new(catalogue: &Catalogue) -> Self {
        let sets = 0..1 << Region::ALL.len();
        Self(sets.map(|bits| Regions(bits).bookmakers_in(catalogue)).collect())
    }

    pub(crate) fn bookmakers(&self, regions: Regions) -> BookmakerSet {
        self.0.get(usize::from(regions.0)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_the_catalogue_does() {
        let catalogue = Catalogue::load(None).unwrap();
        let table = RegionTable::new(&catalogue);
        for one in Region::ALL {
            for other in Region::ALL {
                let mut regions = Regions::just(one);
                regions.insert(other);
                assert_eq!(table.bookmakers(regions), catalogue.bookmakers_in(&[one, other]));
            }
        }
        assert_eq!(table.bookmakers(Regions::default()), BookmakerSet::default());
    }
}
