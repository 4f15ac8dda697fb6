//! Invented teams, promotions, tournaments and courses.

use super::noise::{mix, mix_signed, pick};

/// American football leagues; each has 40 teams.
pub(crate) const LEAGUES: [&str; 4] = [
    "Continental Gridiron Union",
    "Lakes & Plains Football Association",
    "Seaboard Collegiate Conference",
    "Frontier Spring League",
];

/// A team of a league, 0 to 39.
pub(crate) fn team(league: u64, index: u64) -> Box<str> {
    let (stem, ending) = (
        pick(index % 8, &STEMS).unwrap_or_default(),
        pick(index / 8, &STEM_ENDINGS).unwrap_or_default(),
    );
    // Mascots are offset by league, so that towns with the same name have different ones.
    let mascot = pick_word(index + league * 11, MASCOTS);
    match league {
        0 => format!("{stem}{ending} {mascot}"),
        1 => format!("Port {stem}{ending} {mascot}"),
        2 => format!("{stem}{ending} State {mascot}"),
        _ => format!("North {stem}{ending} {mascot}"),
    }
    .into()
}

/// A numbered card of one of the two big mixed martial arts promotions.
pub(crate) fn mma_card(track: u64, card: i64) -> Box<str> {
    let promotion = pick(track, &["Ironvale FC", "Caged Meridian"]).unwrap_or_default();
    format!("{promotion} {}", card.rem_euclid(1000)).into()
}

/// The small card with the scheduled faults of each hour.
pub(crate) fn prospects_card(hour: i64) -> Box<str> {
    format!("Ironvale Prospects {}", hour.rem_euclid(1000)).into()
}

/// A boxing show.
pub(crate) fn boxing_show(track: u64, show: i64) -> Box<str> {
    let promoter = pick_word(track, PROMOTERS);
    format!("{promoter} {}", show.rem_euclid(1000)).into()
}

/// A week's tennis tournament of a tour.
pub(crate) fn tennis_tournament(seed: u64, tour: u64, week: i64) -> Box<str> {
    let key = mix_signed(mix(seed, tour + 0x7e), week);
    let town = pick_word(week.cast_unsigned() * 3 + tour, TOWNS);
    let kind = pick(key, &["Open", "Classic", "Masters", "Trophy"]).unwrap_or_default();
    let suffix = pick(tour, &[" (men)", " (women)", " Challenger"]).unwrap_or_default();
    format!("{town} {kind}{suffix}").into()
}

/// Golf tours, and the circuit of qualifiers last.
pub(crate) const GOLF_TOURS: [&str; 5] = [
    "Meridian Tour",
    "Old World Tour",
    "Aurora Women's Tour",
    "Pacific Rim Circuit",
    "Meridian Qualifying Series",
];

/// A golf tournament's title. Titles recur, but not within four months.
pub(crate) fn golf_title(seed: u64, tour: u64, number: i64) -> Box<str> {
    let key = mix_signed(mix(seed, tour + 0x60f), number);
    let course = pick_word(number.cast_unsigned().wrapping_mul(4).wrapping_add(tour), COURSES);
    if tour == 4 {
        return format!("Qualifier {} at {course}", number.rem_euclid(1000)).into();
    }
    let kind = pick(key, &["Championship", "Invitational", "Open", "Classic"]).unwrap_or_default();
    format!("{course} {kind}").into()
}

/// One of the words of a list.
fn pick_word(hash: u64, list: &'static str) -> &'static str {
    let words: Vec<&str> = list.split('|').collect();
    pick(hash, &words).unwrap_or_default()
}

const PROMOTERS: &str = "Kestrel Ring Night|Brasswell Promotions|Halcyon Boxe Gala|Southern Bell Series|Kestrel Prelims";
const STEMS: [&str; 8] =
    ["Brack", "Calder", "Dunmar", "Ember", "Fenwar", "Gallow", "Hollin", "Marl"];
const STEM_ENDINGS: [&str; 5] = ["water", "haven", "mere", "gate", "fells"];
const MASCOTS: &str = "\
    Herons|Anvils|Lanterns|Badgers|Comets|Otters|Foundry|Harriers|Kestrels|Millers|\
    Night Owls|Paddlers|Quarrymen|Riveters|Sentinels|Tidewolves|Umbras|Voyageurs|\
    Wagoneers|Axemen|Bison Kings|Cyclones|Drovers|Elk|Ferrymen|Geysers|Hornets|Ironsides|\
    Jackdaws|Keelboats|Locomotives|Mustards|Nightjars|Osprey|Pathfinders|Rockslides|\
    Sawyers|Thunderbulls|Vanguards|Wolverhounds";
const TOWNS: &str = "\
    Vellmar|Sankt Orrin|Porto Calva|Ostravik|Bellacourt|Quarrington|Ilhabrava|Nørhavn|\
    Castelvento|Drumcarrow|Yasubetsu|Montréaux-les-Pins|Szarvöld|Tavira Sul|\
    Lakemont Springs|Alderhythe|Puerto Lindoro|Grünewaldau|Kilmorran|Saint-Ambroix-Mer|\
    Vårsund|Rocca Merlina|Zelenograva|Amberley Heath|Cabo Serrano|Hirakami|Oudenzee|\
    Marrakeld|Windhoven|Lough Ennis";
const COURSES: &str = "\
    Corrie Links|Blackmere Dunes|Saltgrass Bay|Royal Drumcarrow|Pinehallow|\
    Copper Canyon Ranch|Las Encinillas|Domaine de Valserre|Hochwaldsee|Fjordmark|\
    Tsukihama|Whistling Reeds|Glenorrin|Prairie Lantern|Old Thornbeck|Cypress Ladder|\
    Kingfisher Point|Baia Verdemar|Redbluff National|Sandwhistle|Moorgate Heath|\
    Harbour Isle|Ptarmigan Ridge|Coral Trellis|Bois-Doré";

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_teams_share_a_name() {
        let teams: HashSet<_> =
            (0..4).flat_map(|league| (0..40).map(move |i| team(league, i))).collect();
        assert_eq!(teams.len(), 160);
    }

    #[test]
    fn titles_of_golf_do_not_come_back_soon() {
        for first in 4000..4100 {
            let tours = (0..4).flat_map(|tour| (first..first + 6).map(move |n| (tour, n)));
            let qualifiers = (first..first + 200).map(|n| (4, n));
            let titles: Vec<_> =
                tours.chain(qualifiers).map(|(tour, n)| golf_title(3, tour, n)).collect();
            let distinct: HashSet<_> = titles.iter().collect();
            assert_eq!(distinct.len(), titles.len());
        }
    }
}
