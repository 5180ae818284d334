//! Skinning weights: a folded card, Mira's eyelid, rivals on unseen poses, libigl on the same tetrahedra and surface, full
//! sizes, dragging, and transfer.

mod arap;
mod card;
mod compare;
mod drag;
mod eyelid;
mod mesh_ik;
mod race;
mod shapes;
mod size;
mod transfer;

use crate::console::print;
use anyhow::{Result, bail};
use clap::Args;
use std::path::PathBuf;
use understudy_core::{Face, Mesh, MeshParts, Vec3};

/// What to measure.
#[derive(Debug, Args)]
pub struct WeightsArguments {
    /// card, eyelid, compare, race, arap, size, drag, transfer [default: all].
    pub sections: Vec<String>,
    /// Folder of pictures and the Python environment.
    #[arg(short, long, value_name = "DIR", default_value = "target/bench-weights")]
    pub output: PathBuf,
}

/// Runs the sections, each of which prints its figures.
pub fn run(arguments: &WeightsArguments) -> Result<()> {
    const ALL: [&str; 8] = ["card", "eyelid", "compare", "race", "arap", "size", "drag", "transfer"];
    std::fs::create_dir_all(&arguments.output)?;
    let chosen: Vec<&str> = match arguments.sections.is_empty() {
        true => ALL.to_vec(),
        false => arguments.sections.iter().map(String::as_str).collect(),
    };
    for section in chosen {
        print(&format!("\n{section}"));
        match section {
            "card" => card::run(&arguments.output)?,
            "eyelid" => eyelid::run(&arguments.output)?,
            "compare" => compare::run(&arguments.output)?,
            "arap" => arap::run(&arguments.output)?,
            "race" => race::run(&arguments.output)?,
            "size" => size::run()?,
            "drag" => drag::run()?,
            "transfer" => transfer::run(&arguments.output)?,
            other => bail!("there is no section '{other}'; there are: {}", ALL.join(", ")),
        }
    }
    Ok(())
}

/// A flat grid of `[nx × ny]` vertices with alternating diagonals, a centimetre apart.
fn card(nx: usize, ny: usize) -> Result<Mesh> {
    let positions = (0..nx * ny).map(|i| Vec3::new((i % nx) as f32, 0.0, (i / nx) as f32)).collect();
    let cell = |i: usize| {
        let at = (i / (nx - 1) * nx + i % (nx - 1)) as u32;
        let (a, b, c, d) = (at, at + nx as u32, at + nx as u32 + 1, at + 1);
        match (i / (nx - 1) + i % (nx - 1)) % 2 {
            0 => [Face::triangle(a, b, c), Face::triangle(a, c, d)],
            _ => [Face::triangle(a, b, d), Face::triangle(b, c, d)],
        }
    };
    let faces = (0..(nx - 1) * (ny - 1)).flat_map(cell).collect();
    Ok(MeshParts { positions, faces, ..MeshParts::default() }.build()?)
}
