//! Paints a person by code: skin with its reds and pores, lips, brows hair by hair, stubble, freckles, lid rims, irises,
//! teeth, cropped hair and a shirt. Every colour is a function of the place on the head at rest.

use super::HeadParts;
use super::canvas::{Canvas, Texel};
use crate::Image;
use crate::image::hex;
use crate::marks::{border_rings, distance_to_piece};
use rayon::prelude::*;
use understudy_core::{Face, Random, Vec2, Vec3};

type Colour = [f32; 3];

/// What differs from face to face.
#[derive(Debug, Clone, PartialEq)]
pub struct Complexion {
    /// 0 fair to 1 dark.
    pub melanin: f32,
    /// Of cheeks, nose and ears.
    pub redness: f32,
    /// Albedo of hair and brows.
    pub hair: Colour,
    /// How much hair covers the scalp, 0 to 1.
    pub cropped: f32,
    /// Half the width of the brows, cm.
    pub brow_width: f32,
    /// Density of the stubble, 0 to 1.
    pub stubble: f32,
    /// 0 to 1.
    pub freckles: f32,
    /// Albedo of lips.
    pub lips: Colour,
    /// Albedo of irises.
    pub iris: Colour,
    /// Albedo of the shirt.
    pub shirt: Colour,
    /// Of the noise in skin and hair.
    pub seed: u64,
}

fn mix(a: Colour, b: Colour, share: f32) -> Colour {
    [0, 1, 2].map(|c| a[c] + (b[c] - a[c]) * share.clamp(0.0, 1.0))
}

fn times(a: Colour, b: Colour) -> Colour {
    [0, 1, 2].map(|c| a[c] * b[c])
}

/// 0 below `low`, 1 above `high`, smooth between; the other way round where `low` is larger.
fn step(low: f32, high: f32, value: f32) -> f32 {
    let t = ((value - low) / (high - low)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

impl Complexion {
    /// Someone.
    pub fn random(random: &mut Random) -> Self {
        let melanin = random.uniform(0.0, 1.0).powf(1.2);
        let hairs = [0x17120f, 0x2b1d14, 0x3d2a1b, 0x5a3d22, 0x7d5a33, 0x6e6a66];
        let most = if melanin > 0.55 { 2 } else { hairs.len() };
        let hair = hex(hairs[random.below(most)]);
        let irises = [0x3b2414, 0x4a2e18, 0x5f4a26, 0x5d6b3f, 0x4f7391, 0x7590a3];
        let iris = hex(irises[random.below(if melanin > 0.5 { 2 } else { irises.len() })]);
        let shirts = [0x2d3440, 0x5b6770, 0x3f4f3c, 0x6d3b38, 0x1f2a44, 0x8a8478];
        let skin = skin_tone(melanin);
        let rouge = random.uniform(0.0, 0.35);
        let lips = mix(times(skin, [0.80, 0.56, 0.56]), hex(0xa83f4c), rouge);
        Self {
            melanin,
            redness: random.uniform(0.25, 0.9) * (1.0 - 0.5 * melanin),
            hair,
            cropped: if random.unit() < 0.25 { 0.12 } else { random.uniform(0.75, 1.0) },
            brow_width: random.uniform(0.20, 0.36),
            stubble: if random.unit() < 0.5 { 0.0 } else { random.uniform(0.25, 0.9) },
            freckles: if random.unit() < 0.3 { random.uniform(0.3, 0.8) * (1.0 - melanin) } else { 0.0 },
            lips,
            iris,
            shirt: hex(shirts[random.below(shirts.len())]),
            seed: random.next_u64(),
        }
    }

    /// The one of the rendered style: clear, with brows, lips and a little stubble that a solver can hold on to.
    pub fn house() -> Self {
        Self {
            melanin: 0.28,
            redness: 0.6,
            hair: hex(0x33231a),
            cropped: 0.95,
            brow_width: 0.30,
            stubble: 0.3,
            freckles: 0.35,
            lips: hex(0xb5635c),
            iris: hex(0x4f7391),
            shirt: hex(0x2d3440),
            seed: 0x0068_6f75_7365,
        }
    }
}

fn of_vertex(parts: &HeadParts) -> impl Iterator<Item = &u32> {
    parts.mesh.segments().of_vertex.iter()
}

fn skin_tone(melanin: f32) -> Colour {
    let tones = [hex(0xf0cfbb), hex(0xdcae90), hex(0xb9835f), hex(0x8a5a3c), hex(0x5a3826)];
    let at = melanin.clamp(0.0, 1.0) * 3.999;
    mix(tones[at as usize], tones[at as usize + 1], at.fract())
}

/// A painter of one head model and one complexion.
pub(super) struct Painter<'a> {
    parts: &'a HeadParts,
    complexion: &'a Complexion,
    skin: Colour,
    lids: Vec<Vec3>,
    outline: Vec<Vec2>,
    names: Vec<&'a str>,
    eyes: [Vec3; 2],
    /// Segment and centre of each eyeball.
    balls: Vec<(u32, Vec3)>,
}

impl<'a> Painter<'a> {
    pub fn new(parts: &'a HeadParts, complexion: &'a Complexion) -> Self {
        let at = |landmark: usize| parts.mesh.positions()[parts.landmarks[landmark] as usize];
        let outline = (48..60).map(|landmark| at(landmark).truncate()).collect();
        let middle = |range: std::ops::Range<usize>| range.clone().map(at).sum::<Vec3>() / range.len() as f32;
        let eyes = [middle(42..48), middle(36..42)];
        let face = parts.mesh.segments().find("face").map(|segment| segment as u32);
        let of = &parts.mesh.segments().of_vertex;
        let is_face = |f: &&Face| f.corners().iter().all(|corner| Some(of[*corner as usize]) == face);
        let faces: Vec<Face> = parts.mesh.faces().iter().filter(is_face).copied().collect();
        let point = |vertex: &u32| parts.mesh.positions()[*vertex as usize];
        let near_eye = |p: &Vec3| eyes.iter().any(|eye| (*p - *eye).length() < 2.2);
        let lids = border_rings(&faces).iter().flatten().map(point).filter(near_eye).collect();
        let names = parts.mesh.segments().names.iter().map(String::as_str).collect();
        let ball = |name: &str| {
            let segment = parts.mesh.segments().find(name)? as u32;
            let of = |(vertex, p): (&u32, &Vec3)| (*vertex == segment).then_some(*p);
            let points: Vec<Vec3> = of_vertex(parts).zip(parts.mesh.positions()).filter_map(of).collect();
            let (low, high) =
                points.iter().fold((Vec3::INFINITY, Vec3::NEG_INFINITY), |(l, h), p| (l.min(*p), h.max(*p)));
            // Width and height are the ball's; a cornea adds to its depth.
            let radius = 0.25 * (high.x - low.x + high.y - low.y);
            Some((segment, Vec3::new((low.x + high.x) / 2.0, (low.y + high.y) / 2.0, low.z + radius)))
        };
        let balls = ["eyeball_left", "eyeball_right"].into_iter().filter_map(ball).collect();
        Self { parts, complexion, skin: skin_tone(complexion.melanin), lids, outline, names, eyes, balls }
    }

    /// A map in linear light.
    pub fn paint(&self, canvas: &Canvas) -> Image {
        let pixels = canvas.texels.par_iter().with_min_len(4096).map(|texel| self.colour(texel)).collect();
        Image::from_pixels(canvas.side, canvas.side, pixels).expect("a canvas is a full square")
    }

    fn colour(&self, texel: &Texel) -> Colour {
        let Some(name) = self.names.get(texel.segment as usize) else { return self.skin };
        match *name {
            "face" => self.face(texel.place),
            "head_neck" => self.head(texel.place),
            "eyeball_left" => self.eye(texel.place, texel.segment),
            "eyeball_right" => self.eye(texel.place, texel.segment),
            "mouth_socket" => hex(0x7a3436),
            "gums_tongue" => self.gums(texel.place),
            name if name.starts_with("tooth") => self.tooth(texel.place),
            name if name.starts_with("eye_socket") => times(self.skin, [0.85, 0.55, 0.5]),
            _ => self.skin,
        }
    }

    fn landmark(&self, index: usize) -> Vec3 {
        self.parts.mesh.positions()[self.parts.landmarks[index] as usize]
    }

    /// Skin without features: tone, blotches, pores, redness where blood is near.
    fn skin(&self, p: Vec3) -> Colour {
        let seed = self.complexion.seed;
        let blotches =
            0.05 * noise(p * 0.55, seed) + 0.05 * noise(p * 1.7, seed ^ 1) + 0.03 * noise(p * 4.0, seed ^ 2);
        let pores = 0.05 * noise(p * 9.0, seed ^ 3) + 0.045 * noise(p * 17.0, seed ^ 4);
        let tone = self.skin.map(|value| value * (1.0 + blotches + pores));
        let blob = |centre: Vec3, radius: f32| (-(p - centre).length_squared() / (radius * radius)).exp();
        let cheek = |side: f32| Vec3::new(side * 4.6, 0.2, 8.6);
        let ear =
            step(6.2, 7.6, p.x.abs()) * step(4.6, 2.5, p.z) * step(-4.0, -1.0, p.y) * step(7.0, 4.5, p.y);
        let red = 0.9 * (blob(cheek(1.0), 2.3) + blob(cheek(-1.0), 2.3))
            + 1.1 * blob(self.landmark(30), 1.2)
            + 0.5 * blob(self.landmark(8), 1.6)
            + 0.8 * ear
            + 0.35 * noise(p * 0.9, seed ^ 5);
        let red = (self.complexion.redness * red).clamp(-0.3, 1.2);
        times(tone, [1.0 + 0.03 * red, 1.0 - 0.24 * red, 1.0 - 0.20 * red])
    }

    fn face(&self, p: Vec3) -> Colour {
        let seed = self.complexion.seed;
        let mut colour = self.skin(p);
        for eye in &self.eyes {
            let below = Vec3::new(eye.x, eye.y - 1.15, eye.z);
            let bag = (-(Vec3::new((p.x - below.x) / 1.6, (p.y - below.y) / 0.55, (p.z - below.z) / 1.5))
                .length_squared())
            .exp();
            let lid = (-(Vec3::new((p.x - eye.x) / 1.7, (p.y - eye.y - 0.55) / 0.65, (p.z - eye.z) / 1.4))
                .length_squared())
            .exp();
            colour = times(
                colour,
                [1.0 - 0.10 * bag - 0.08 * lid, 1.0 - 0.17 * bag - 0.15 * lid, 1.0 - 0.12 * bag - 0.12 * lid],
            );
        }
        let speckle = noise(p * 5.2, seed ^ 8) * 0.7 + noise(p * 9.7, seed ^ 9) * 0.5;
        let where_ = step(-3.0, 0.0, p.y) * step(5.5, 3.0, p.y) * step(6.5, 9.0, p.z);
        let spot = step(0.42, 0.62, speckle) * where_ * self.complexion.freckles;
        colour = mix(colour, times(self.skin, [0.62, 0.45, 0.38]), 0.8 * spot);
        colour = self.stubble(p, colour);
        colour = self.lips(p, colour);
        colour = self.hairline(p, colour);
        colour = self.brows(p, colour);
        let rim =
            self.lids.iter().map(|lid| (*lid - p).length_squared()).fold(f32::INFINITY, f32::min).sqrt();
        let upper =
            self.eyes.iter().any(|eye| (eye.truncate() - p.truncate()).length() < 2.2 && p.y > eye.y - 0.05);
        let (width, strength) = if upper { (0.20, 0.92) } else { (0.11, 0.45) };
        mix(colour, times(self.complexion.hair, [0.6, 0.55, 0.55]), strength * step(width, 0.35 * width, rim))
    }

    fn stubble(&self, p: Vec3, colour: Colour) -> Colour {
        if self.complexion.stubble == 0.0 {
            return colour;
        }
        let seed = self.complexion.seed;
        // Jaw and chin up to a line from the ear to the corner of the mouth, the upper lip, the throat.
        let cheek_line = -1.4 - 0.16 * (p.z - 4.0).max(0.0) - 0.10 * (7.0 - p.x.abs()).max(0.0)
            + 0.3 * noise(p * 1.1, seed ^ 11);
        let jaw = step(cheek_line + 0.4, cheek_line - 0.7, p.y) * step(2.0, 4.5, p.z);
        let moustache = step(2.9, 2.1, p.x.abs()) * step(-1.35, -1.75, p.y) * step(10.0, 10.8, p.z);
        let throat = step(-13.0, -9.5, p.y);
        let bare = step(0.7, 1.3, p.x.abs()).max(step(-4.9, -5.4, p.y)).max(step(-4.0, -3.6, p.y));
        let under_lip = 0.55 + 0.45 * bare;
        let cover = (jaw.max(moustache) * throat * under_lip).clamp(0.0, 1.0) * self.complexion.stubble;
        let hairs = 0.62 + 0.75 * (0.6 * noise(p * 13.0, seed ^ 12) + 0.6 * noise(p * 23.0, seed ^ 13));
        let shadow = mix(times(self.skin, [0.62, 0.62, 0.66]), self.complexion.hair, 0.55);
        mix(colour, shadow, 0.72 * cover * hairs.clamp(0.0, 1.2))
    }

    fn lips(&self, p: Vec3, colour: Colour) -> Colour {
        let depth = (self.landmark(48).z + self.landmark(54).z) * 0.5 - 0.6;
        if p.z < depth || (p.y + 3.4).abs() > 2.5 {
            return colour;
        }
        let inside =
            -signed_distance(&self.outline, p.truncate()) + 0.03 * noise(p * 6.0, self.complexion.seed ^ 20);
        let creases = 0.10 * noise(Vec3::new(p.x * 14.0, p.y * 2.0, p.z), self.complexion.seed ^ 21);
        let tone = self.complexion.lips.map(|value| value * (1.0 + creases));
        // Wet and dark towards the mouth.
        let deep = step(0.35, 0.75, inside) * 0.25;
        mix(
            colour,
            times(tone, [1.0 - deep, 1.0 - 1.3 * deep, 1.0 - 1.3 * deep]),
            0.92 * step(-0.09, 0.07, inside),
        )
    }

    fn brows(&self, p: Vec3, mut colour: Colour) -> Colour {
        for (brow, inner) in [([17, 18, 19, 20, 21], 21), ([22, 23, 24, 25, 26], 22)] {
            // Landmarks lie along the upper edge; the middle of the hairs is a little lower.
            let line = brow.map(|landmark| self.landmark(landmark) - Vec3::Y * 0.12);
            let distance = line
                .windows(2)
                .map(|pair| distance_to_piece(p, pair[0], pair[1]))
                .fold(f32::INFINITY, f32::min);
            if distance > 1.2 {
                continue;
            }
            let inner = self.landmark(inner);
            let outwards = ((p.x - inner.x).abs() / 4.6).clamp(0.0, 1.0);
            let width = self.complexion.brow_width * (1.15 - 0.75 * outwards);
            // Hairs grow up at the nose and along the brow further out.
            let side = inner.x.signum();
            let (sine, cosine) = (1.15 - 1.0 * outwards).sin_cos();
            let along = side * p.x * cosine + p.y * sine;
            let across = -side * p.x * sine + p.y * cosine;
            let hairs = noise(Vec3::new(along * 1.6, across * 13.0, 0.3), self.complexion.seed ^ 30);
            let cover = step(width * 1.35, width * 0.55, distance + 0.10 * hairs);
            colour = mix(colour, self.complexion.hair, cover * (0.80 + 0.35 * hairs));
        }
        colour
    }

    /// Cropped hair above the forehead, down to the ears and the nape.
    fn hairline(&self, p: Vec3, colour: Colour) -> Colour {
        let seed = self.complexion.seed;
        let front = 9.6 - 0.035 * p.x * p.x + 0.25 * noise(p * 1.3, seed ^ 40);
        let temples = step(6.2, 4.2, p.z);
        let side = 9.0 - 9.5 * temples * step(5.4, 6.8, p.x.abs());
        let line = front.min(if p.z > 0.5 { side.max(2.2) } else { -5.0 });
        let ear =
            step(7.0, 7.7, p.x.abs()) * step(-4.5, -3.5, p.y) * step(5.8, 5.0, p.y) * step(-2.0, -1.0, p.z);
        let cover = step(line - 0.35, line + 0.9, p.y) * (1.0 - ear) * self.complexion.cropped;
        let strands =
            noise(Vec3::new(p.x * 7.0, p.y * 3.0, p.z * 3.0), seed ^ 41) + 0.8 * noise(p * 12.0, seed ^ 42);
        let hair = self.complexion.hair.map(|value| value * (1.15 + 0.4 * strands));
        mix(colour, hair, cover * (0.93 + 0.12 * strands))
    }

    fn head(&self, p: Vec3) -> Colour {
        let colour = self.hairline(p, self.stubble(p, self.skin(p)));
        self.shirt(p, colour)
    }

    fn shirt(&self, p: Vec3, colour: Colour) -> Colour {
        let neckline = -15.4 + 0.10 * (p.z - 2.0).abs() - 0.02 * p.z.max(0.0);
        let knit = 1.0 + 0.10 * noise(p * Vec3::new(3.0, 16.0, 3.0), self.complexion.seed ^ 50);
        mix(colour, self.complexion.shirt.map(|value| value * knit), step(neckline, neckline - 0.15, p.y))
    }

    fn gums(&self, p: Vec3) -> Colour {
        let tongue = step(2.2, 1.6, p.x.abs()) * step(-2.9, -3.4, p.y);
        let vary = 1.0 + 0.08 * noise(p * 4.0, self.complexion.seed ^ 60);
        mix(hex(0xb8605f), hex(0xa9504f), tongue).map(|value| value * vary)
    }

    fn tooth(&self, p: Vec3) -> Colour {
        let vary = 1.0 + 0.03 * noise(p * 5.0, self.complexion.seed ^ 61);
        hex(0xe9e0cf).map(|value| value * vary)
    }

    fn eye(&self, p: Vec3, segment: u32) -> Colour {
        let centre =
            self.balls.iter().find(|(of, _)| *of == segment).map_or(Vec3::ZERO, |(_, centre)| *centre);
        let offset = p - centre;
        let angle = offset.angle_between(Vec3::Z).to_degrees();
        let turn = offset.y.atan2(offset.x);
        let seed = self.complexion.seed;
        let streaks = noise(Vec3::new(turn.cos() * 9.0, turn.sin() * 9.0, angle * 0.06), seed ^ 70);
        let iris = self.complexion.iris.map(|value| value * (1.05 + 0.45 * streaks));
        let iris = mix(iris, times(self.complexion.iris, [0.25; 3]), step(20.0, 23.5, angle));
        let iris = mix(iris, times(self.complexion.iris, [1.5, 1.3, 1.0]), 0.5 * step(14.0, 10.0, angle));
        let centre = mix(hex(0x08080a), iris, step(7.6, 9.0, angle));
        let veins = step(0.35, 0.7, noise(p * Vec3::new(5.0, 9.0, 5.0), seed ^ 71)) * step(35.0, 60.0, angle);
        let white = mix(hex(0xeae4de), hex(0xd39a8f), 0.5 * veins + 0.35 * step(45.0, 75.0, angle));
        // A highlight that sits on the eye, as if a window were before it.
        let glint = step(
            2.1,
            1.1,
            (offset.normalize_or_zero() - Vec3::new(-0.14, 0.17, 0.975).normalize()).length() * 57.3,
        );
        mix(mix(centre, white, step(23.0, 25.5, angle)), [1.0; 3], 0.9 * glint)
    }
}

/// Distance to a closed polygon, negative inside.
fn signed_distance(polygon: &[Vec2], point: Vec2) -> f32 {
    let (mut distance, mut inside) = (f32::INFINITY, false);
    for (index, &a) in polygon.iter().enumerate() {
        let b = polygon[(index + 1) % polygon.len()];
        distance = distance.min(distance_to_piece(point.extend(0.0), a.extend(0.0), b.extend(0.0)));
        if (a.y > point.y) != (b.y > point.y) && point.x < a.x + (b - a).x * (point.y - a.y) / (b - a).y {
            inside = !inside;
        }
    }
    if inside { -distance } else { distance }
}

/// Smooth value noise, about −1 to 1, one bump a unit.
pub(super) fn noise(p: Vec3, seed: u64) -> f32 {
    let cell = p.floor();
    let t = p - cell;
    let t = t * t * (Vec3::splat(3.0) - t * 2.0);
    let value = |dx: i64, dy: i64, dz: i64| {
        let [x, y, z] = [(cell.x as i64) + dx, (cell.y as i64) + dy, (cell.z as i64) + dz].map(|v| v as u64);
        let mut hash = seed
            ^ x.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ y.wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
            ^ z.wrapping_mul(0x1656_67b1_9e37_79f9);
        hash = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((hash >> 40) as f32) / (1u32 << 23) as f32 - 1.0
    };
    let line = |dy: i64, dz: i64| value(0, dy, dz) + (value(1, dy, dz) - value(0, dy, dz)) * t.x;
    let plane = |dz: i64| line(0, dz) + (line(1, dz) - line(0, dz)) * t.y;
    plane(0) + (plane(1) - plane(0)) * t.z
}
