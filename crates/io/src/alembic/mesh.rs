//! Meshes of Alembic: faces and texture coordinates that stay, positions that move.

use super::archive::{Archive, Holds, Object, Property};
use crate::ParseError;
use crate::polygons::{Corner, Polygons};
use understudy_core::{MeshParts, Vec2, Vec3};

/// Schemas whose objects are meshes; a subdivision surface is read as its cage.
pub(super) const SCHEMAS: [&str; 2] = ["AbcGeom_PolyMesh", "AbcGeom_SubD"];

/// The properties of one mesh.
#[derive(Debug)]
pub(super) struct MeshProperties {
    pub path: String,
    /// `P`.
    pub positions: Property,
    indices: Property,
    counts: Property,
    uvs: Option<Property>,
}

impl MeshProperties {
    pub fn read(archive: &Archive, object: &Object) -> Result<Self, ParseError> {
        let path = object.path.clone();
        let missing = |name: &str| ParseError::new(path.clone(), format!("is a mesh without '{name}'"));
        let compound = object.properties.iter().find(|property| property.name == ".geom");
        let mut inner = archive.inner(compound.ok_or_else(|| missing(".geom"))?, &path)?;
        let mut take = |name: &str| {
            let place = inner.iter().position(|property| property.name == name)?;
            Some(inner.swap_remove(place)).filter(|p| p.samples > 0 || p.holds == Holds::Properties)
        };
        let positions = take("P").ok_or_else(|| missing("P"))?;
        let indices = take(".faceIndices").ok_or_else(|| missing(".faceIndices"))?;
        let counts = take(".faceCounts").ok_or_else(|| missing(".faceCounts"))?;
        if !positions.is(Holds::Array, 3) {
            return Err(ParseError::new(path, "'P' is no array of points"));
        }
        Ok(Self { positions, indices, counts, uvs: take("uv"), path })
    }

    /// Faces with texture coordinates, and how many vertices `P` has. Corners are in the order of other formats:
    /// Alembic lists them clockwise.
    pub fn topology(&self, archive: &Archive) -> Result<(MeshParts, usize, Vec<String>), ParseError> {
        let fail = |problem: String| ParseError::new(self.path.clone(), problem);
        let vertices = archive.numbers(&self.positions, 0)? as usize / 3;
        let counts = archive.indices(&self.counts, 0, &self.path)?;
        let indices = archive.indices(&self.indices, 0, &self.path)?;
        let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        if total != indices.len() as u64 {
            return Err(fail(format!("its faces have {total} corners and {} indices", indices.len())));
        }
        archive.charge(&self.path, 64 * indices.len() as u64 + 64 * vertices as u64)?;
        let mut warnings = Vec::new();
        let (table, corner_uvs) = self.texture(archive, &indices, vertices, &mut warnings)?;
        let mut polygons = Polygons::default();
        let mut lines = 0;
        let mut corners: Vec<Corner> = Vec::new();
        let mut next = 0;
        for &count in &counts {
            let range = next..next + count as usize;
            next = range.end;
            if count < 3 {
                lines += 1;
                continue;
            }
            corners.clear();
            for corner in range.rev() {
                let vertex = indices[corner] as usize;
                if vertex >= vertices {
                    return Err(fail(format!("a face names vertex {vertex}, but there are {vertices}")));
                }
                corners.push((vertex, corner_uvs.get(corner).map(|uv| *uv as usize)));
            }
            polygons.add(&corners);
        }
        if lines > 0 {
            warnings.push(format!("{}: {lines} faces of fewer than three corners are skipped", self.path));
        }
        let (parts, mended) = polygons.finish(table);
        warnings.extend(mended.into_iter().map(|warning| format!("{}: {warning}", self.path)));
        Ok((parts, vertices, warnings))
    }

    /// The table of texture coordinates and each corner's place in it; nothing where there are none. They are given
    /// per corner or per vertex, with indices or without.
    fn texture(
        &self,
        archive: &Archive,
        indices: &[u32],
        vertices: usize,
        warnings: &mut Vec<String>,
    ) -> Result<(Vec<Vec2>, Vec<u32>), ParseError> {
        let nothing = (Vec::new(), Vec::new());
        let Some(property) = &self.uvs else { return Ok(nothing) };
        let mut inner = archive.inner(property, &self.path)?;
        let mut take = |name: &str| {
            let place = inner.iter().position(|property| property.name == name)?;
            Some(inner.swap_remove(place))
        };
        let (values, places) = match property.holds {
            Holds::Properties => (take(".vals"), take(".indices")),
            Holds::Value | Holds::Array => (Some(property.clone()), None),
        };
        let values = values.filter(|values| values.is(Holds::Array, 2) && values.samples > 0);
        let Some(values) = values else { return Ok(nothing) };
        archive.charge(&self.path, 16 * archive.numbers(&values, 0)?)?;
        let mut flat = Vec::new();
        archive.floats_into(&values, 0, &mut Vec::new(), &mut flat)?;
        let table: Vec<Vec2> = flat.chunks_exact(2).map(|uv| Vec2::new(uv[0], uv[1])).collect();
        let places = match places.filter(|places| places.samples > 0) {
            Some(places) => archive.indices(&places, 0, &self.path)?,
            None => (0..table.len() as u32).collect(),
        };
        let of_corner = match places.len() {
            count if count == indices.len() => places,
            count if count == vertices => {
                let of_vertex = |vertex: &u32| places.get(*vertex as usize).copied().unwrap_or(u32::MAX);
                indices.iter().map(of_vertex).collect()
            }
            count => {
                warnings.push(format!(
                    "{}: {count} texture coordinates for {} corners are left out",
                    self.path,
                    indices.len()
                ));
                return Ok(nothing);
            }
        };
        if table.iter().any(|uv| !uv.is_finite()) || of_corner.iter().any(|uv| *uv as usize >= table.len()) {
            warnings.push(format!("{}: its texture coordinates are damaged and are left out", self.path));
            return Ok(nothing);
        }
        Ok((table, of_corner))
    }

    /// Fails where a sample has other faces, or another number of vertices, than the first. Programs write the faces
    /// again for every frame; mostly they lie where the first lie, or have their key.
    pub fn check_samples(&self, archive: &Archive, vertices: usize) -> Result<(), ParseError> {
        let place = |property: &Property, sample: u32| {
            let time = archive.samplings[property.sampling].time(sample);
            format!("{}: sample {sample} at {time:.4} s", self.path)
        };
        for property in [&self.counts, &self.indices] {
            let first = archive.sample(property, 0)?;
            let mut known = first;
            for sample in 1..if property.is_constant() { 1 } else { property.samples } {
                let data = archive.sample(property, sample)?;
                if data == known {
                    continue;
                }
                let same = data.size == first.size
                    && (data.size == 0
                        || archive.container.start::<16>(data)? == archive.container.start(first)?
                        || archive.container.read(data, 16)? == archive.container.read(first, 16)?);
                if !same {
                    let problem = "has other faces than the first; a twin needs one topology: leave out modifiers \
                                   that change it, and export again";
                    return Err(ParseError::new(place(property, sample), problem));
                }
                known = data;
            }
        }
        for sample in 1..if self.positions.is_constant() { 1 } else { self.positions.samples } {
            let numbers = archive.numbers(&self.positions, sample)?;
            if numbers != 3 * vertices as u64 {
                let problem = format!("has {} vertices, the first has {vertices}", numbers / 3);
                return Err(ParseError::new(place(&self.positions, sample), problem));
            }
        }
        Ok(())
    }
}

/// Three numbers each.
pub(super) fn points(flat: &[f32]) -> impl Iterator<Item = Vec3> + '_ {
    flat.chunks_exact(3).map(Vec3::from_slice)
}
