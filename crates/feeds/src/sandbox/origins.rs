//! Origins of invented people: given names, and roots and endings of surnames that do not exist.

/// The names of a region, separated by spaces: 16 men's and 10 women's given names, 10 roots and 5 endings.
pub(crate) struct Origin {
    pub(crate) men: &'static str,
    pub(crate) women: &'static str,
    pub(crate) roots: &'static str,
    pub(crate) endings: &'static str,
    /// Endings of women's surnames; different ones if the language has them.
    pub(crate) endings_women: &'static str,
    pub(crate) marks: &'static [Mark],
}

/// A feature of some names of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A particle before some surnames.
    Particle(&'static str),
    /// Two surnames, hyphenated.
    Doubled,
    /// A `Jr.` after the name.
    Junior,
}

pub(crate) static ORIGINS: [Origin; 12] = [
    Origin {
        men: "Dale Travis Marcus Cody Wade Trent Darnell Brock Emmett Lamar Quincy Boone Rhett Tyrell Hollis \
            Garrick",
        women: "Kayla Brynn Maddie Shelby Tessa Jolene Raven Dakota Paige Corinne",
        roots: "Harl Brack Stav Wend Cald Toll Mard Penn Holb Rusk",
        endings: "wick more ridge stone ley",
        endings_women: "wick more ridge stone ley",
        marks: &[Mark::Junior],
    },
    Origin {
        men: "Alfie Callum Rhys Declan Fergus Ewan Niall Gareth Tobias Rory Angus Conor Lachlan Barnaby Dylan \
            Owain",
        women: "Niamh Siobhán Imogen Freya Rhiannon Ailsa Orla Poppy Beatrix Cerys",
        roots: "Thorn Elm Kirk Wether Dunn Craw Pember Hather Ding Lank",
        endings: "bury combe shaw thwaite croft",
        endings_women: "bury combe shaw thwaite croft",
        marks: &[Mark::Particle("O'"), Mark::Doubled],
    },
    Origin {
        men: "Caio Thiago Rafael João Anderson Wagner Otávio Davi Murilo Renan Vinícius Álvaro Everton Luan \
            Gilson Estêvão",
        women: "Letícia Bruna Thaís Íris Rayane Conceição Jussara Marília Débora Lívia",
        roots: "Barr Cerqu Montal Verd Tavor Figu Quint Arroj Pedros Salvat",
        endings: "eira ande elho osa ino",
        endings_women: "eira ande elho osa ino",
        marks: &[Mark::Particle("dos "), Mark::Doubled],
    },
    Origin {
        men: "Íñigo Mateo Joaquín Andrés Ramiro Esteban Fermín Gonzalo Leandro Nahuel Óscar Rubén Tomás Ulises \
            Ezequiel Hernán",
        women: "Jimena Rocío Belén Lucía Itzel Marisol Noemí Xochitl Paloma Inés",
        roots: "Arrog Belm Sald Zurb Mendiv Oroz Villas Quir Etxen Lagun",
        endings: "ález arán ondo uría eros",
        endings_women: "ález arán ondo uría eros",
        marks: &[Mark::Particle("de la "), Mark::Doubled],
    },
    Origin {
        men: "Étienne Loïc Bastien Rémi Thibault Gaël Jocelin Anatole Célestin Yanis Maël Baptiste Corentin \
            Hervé Noé Ulysse",
        women: "Élodie Maëlys Clémence Océane Héloïse Anaïs Solène Capucine Maud Zoé",
        roots: "Beaum Charv Delac Font Gauv March Rouv Tourn Valm Brév",
        endings: "illon eray enec oubet ancourt",
        endings_women: "illon eray enec oubet ancourt",
        marks: &[Mark::Particle("de "), Mark::Doubled],
    },
    Origin {
        men: "Jörg Matthias Falk Hanno Lukas Henning Till Jost Björn Kaspar Veit Florian Götz Ruprecht Emil Moritz",
        women: "Anneke Frieda Käthe Liesel Ronja Saskia Svenja Jördis Mareike Änne",
        roots: "Brück Holz Stein Kalt Röthel Wiesen Grau Lind Öhl Tann",
        endings: "hofer brandt inger egger müller",
        endings_women: "hofer brandt inger egger müller",
        marks: &[Mark::Particle("von "), Mark::Doubled],
    },
    Origin {
        men: "Åke Sindre Håkon Mikkel Torbjørn Søren Eirik Joona Väinö Rasmus Leif Anders Kjell Øyvind Ísak Gunnar",
        women: "Solveig Astrid Maja Ingrid Sigrún Þóra Linnéa Tuuli Aino Ragnhild",
        roots: "Skog Brand Hegg Torn Fjell Strøm Lunde Grøn Vester Hav",
        endings: "voll stad moen rud bakken",
        endings_women: "voll stad moen rud bakken",
        marks: &[Mark::Doubled],
    },
    Origin {
        men: "Ruslan Timur Arsen Bogdan Yaroslav Zaur Murad Stepan Vadim Gleb Rustam Taras Anzor Ilyas Danylo Lev",
        women: "Oksana Lesya Darina Zarema Milana Yulia Vera Polina Solomiya Alina",
        roots: "Karb Tursh Dagar Verkh Zhel Borov Kust Malend Shamar Ogn",
        endings: "anov enko iev ovsky adze",
        endings_women: "anova enko ieva ovska adze",
        marks: &[],
    },
    Origin {
        men: "Łukasz Zdeněk Jiří Mateusz Wojciech Radovan Szymon Vítek Bartosz Ondřej Kamil Grzegorz Štěpán \
            Dušan Tadeáš Przemek",
        women: "Żaneta Kateřina Zofia Vendula Małgorzata Božena Jitka Halina Renáta Kinga",
        roots: "Krzem Dvoř Wolsz Hruš Jablon Stręk Milcz Čern Brzoz Sokol",
        endings: "ák icki ewicz ecký ański",
        endings_women: "áková icka ewicz ecká ańska",
        marks: &[],
    },
    Origin {
        men: "Nicolò Ettore Ruggero Gaetano Tiziano Dario Saverio Cosimo Elia Fabrizio Ludovico Rocco Achille \
            Oreste Ivano Zeno",
        women: "Chiara Ottavia Ginevra Fiammetta Sveva Bianca Loredana Marzia Perla Tecla",
        roots: "Tess Mont Carb Ferr Zann Pell Barb Corv Lomb Gris",
        endings: "arin aldi oletti eschi ucchio",
        endings_women: "arin aldi oletti eschi ucchio",
        marks: &[Mark::Particle("D'")],
    },
    Origin {
        men: "Chidi Kwabena Emeka Olumide Sékou Tunde Kofi Babatunde Ifeanyi Yaw Moussa Amadou Obinna Femi \
            Kelechi Djibril",
        women: "Adaeze Abena Ngozi Aïssatou Folake Esi Chiamaka Mariama Ronke Temi",
        roots: "Okon Adeb Mens Boat Nwach Oyel Trawor Ezen Asam Diakh",
        endings: "we ayo ukwu iro até",
        endings_women: "we ayo ukwu iro até",
        marks: &[],
    },
    Origin {
        men: "Haruki Ren Daichi Takeshi Min-jun Ji-hoon Seung-woo Kaito Shun Yūto Dong-hyun Kenta Sōta \
            Tae-yang Ryō Hyun-ki",
        women: "Aoi Yuna Ji-won Sakura Mei Hana Seo-yeon Rin Ayaka Min-ji",
        roots: "Kuro Hoshi Mizu Taka Shira Nishi Ama Iwa Kage Mura",
        endings: "hara tsuki numa gawa zaki",
        endings_women: "hara tsuki numa gawa zaki",
        marks: &[],
    },
];
