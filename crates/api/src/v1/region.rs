//! Which bookmakers a list of regions means, looked up rather than worked out with every request.

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

    /// Those that are in it, in an order that never changes.
    pub(crate) fn iter(self) -> impl Iterator<Item = Region> {
        Region::ALL.into_iter().filter(move |region| self.contains(*region))
    }

    /// The bookmakers that they have in a catalogue.
    pub(crate) fn bookmakers_in(self, catalogue: &Catalogue) -> BookmakerSet {
        catalogue.bookmakers_in(&self.iter().collect::<Vec<_>>())
    }
}

/// The bookmakers asked for that are in the regions asked for, each where anything was.
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
