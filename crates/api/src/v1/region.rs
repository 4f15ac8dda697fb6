//! Which bookmakers a list of regions means, looked up rather than worked out with every request.

use domain::{BookmakerSet, Catalogue, Region};

/// A set of regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
}

/// The bookmakers of every set of regions.
#[derive(Debug)]
pub(crate) struct RegionTable(Vec<BookmakerSet>);

impl RegionTable {
    pub(crate) fn new(catalogue: &Catalogue) -> Self {
        let sets = (0..1 << Region::ALL.len()).map(|bits| {
            let request: Vec<Region> =
                Region::ALL.into_iter().filter(|region| Regions(bits).contains(*region)).collect();
            catalogue.bookmakers_in(&request)
        });
        Self(sets.collect())
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
