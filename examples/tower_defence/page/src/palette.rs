//! Colours. Red, green and blue also differ in brightness, and each has its own shape, for those who see fewer colours.

use tower_defence::sim::{Colour, Colours};

/// A colour.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rgb(pub u8, pub u8, pub u8);

impl Rgb {
    /// For CSS.
    #[must_use]
    pub fn css(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    /// The same with an opacity, 0 to 1.
    #[must_use]
    pub fn with(self, alpha: f64) -> String {
        format!("rgba({},{},{},{:.3})", self.0, self.1, self.2, alpha.clamp(0.0, 1.0))
    }
}

/// Of turrets, their shots, and runners with only this colour.
#[must_use]
pub const fn paint(colour: Colour) -> Rgb {
    match colour {
        Colour::Red => RED,
        Colour::Green => GREEN,
        Colour::Blue => BLUE,
    }
}

/// Of a runner: mixed light.
#[must_use]
pub const fn mixed(colours: Colours) -> Rgb {
    match colours.bits() {
        1 => RED,
        2 => GREEN,
        3 => Rgb(255, 214, 64),
        4 => BLUE,
        5 => Rgb(226, 116, 255),
        6 => Rgb(84, 222, 245),
        _ => Rgb(240, 244, 255),
    }
}

/// See [`paint`].
pub const RED: Rgb = Rgb(255, 84, 74);
/// See [`paint`].
pub const GREEN: Rgb = Rgb(96, 240, 158);
/// See [`paint`].
pub const BLUE: Rgb = Rgb(72, 128, 255);
/// Coins, and money.
pub const GOLD: Rgb = Rgb(255, 200, 60);
/// The exit, which is the base.
pub const EXIT: Rgb = Rgb(198, 120, 255);
/// The start.
pub const START: Rgb = Rgb(64, 200, 190);
/// What is slow.
pub const ICE: Rgb = Rgb(168, 226, 255);
/// The own runner, and text.
pub const LIGHT: Rgb = Rgb(240, 244, 255);
/// Behind everything.
pub const NIGHT: Rgb = Rgb(9, 13, 26);
/// A free cell, two shades.
pub const FLOOR: [Rgb; 2] = [Rgb(17, 24, 44), Rgb(20, 28, 51)];
/// A rock: its side, its top, its edge.
pub const ROCK: [Rgb; 3] = [Rgb(30, 38, 62), Rgb(47, 57, 88), Rgb(66, 78, 114)];
/// Below a turret.
pub const PLATE: Rgb = Rgb(28, 36, 62);

#[cfg(test)]
mod tests {
    use super::*;

    /// As people see it who lack one kind of cones: Machado, Oliveira and Fernandes 2009, severity 1.
    const SIGHTS: [(&str, [[f64; 3]; 3]); 4] = [
        ("all", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "protanopia",
            [
                [0.152286, 1.052583, -0.204868],
                [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998],
            ],
        ),
        (
            "deuteranopia",
            [
                [0.367322, 0.860646, -0.227968],
                [0.280085, 0.672501, 0.047413],
                [-0.011820, 0.042940, 0.968881],
            ],
        ),
        (
            "tritanopia",
            [
                [1.255528, -0.076749, -0.178779],
                [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900],
            ],
        ),
    ];

    fn seen(Rgb(r, g, b): Rgb, sight: &[[f64; 3]; 3]) -> [f64; 3] {
        let linear = [r, g, b].map(|part| (f64::from(part) / 255.0).powf(2.2));
        let [r, g, b] =
            sight.map(|row| row.iter().zip(linear).map(|(a, b)| a * b).sum::<f64>().clamp(0.0, 1.0));
        // CIE Lab, D65.
        let f = |part: f64| if part > 0.008856 { part.cbrt() } else { 7.787 * part + 16.0 / 116.0 };
        let x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
        let y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
        let z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn difference(a: Rgb, b: Rgb, sight: &[[f64; 3]; 3]) -> f64 {
        let (a, b) = (seen(a, sight), seen(b, sight));
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn the_three_colours_differ_whatever_eyes_look_at_them() {
        for (name, sight) in &SIGHTS {
            for (a, b) in [(RED, GREEN), (GREEN, BLUE), (BLUE, RED)] {
                let far = difference(a, b, sight);
                assert!(far > 30.0, "{name}: {a:?} and {b:?} differ by {far}");
            }
            for colour in [RED, GREEN, BLUE, GOLD, EXIT] {
                let far =
                    FLOOR.into_iter().map(|floor| difference(colour, floor, sight)).fold(f64::MAX, f64::min);
                assert!(far > 30.0, "{name}: {colour:?} on the floor differs by {far}");
            }
        }
    }

    #[test]
    fn each_mix_of_light_is_a_colour_of_its_own() {
        let all: Vec<Rgb> = (1..8).map(|bits| mixed(Colours::from_bits(bits))).collect();
        let sight = &SIGHTS[0].1;
        for (index, a) in all.iter().enumerate() {
            for b in &all[index + 1..] {
                assert!(difference(*a, *b, sight) > 25.0, "{a:?} {b:?}");
            }
        }
    }
}
