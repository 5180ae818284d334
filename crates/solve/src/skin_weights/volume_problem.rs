//! The bare problem in a volume: tetrahedra, held nodes and their weights, so that other solvers can be given the same.

use super::bounded::System;
use super::domain::{Domain, Surface};
use super::quasi::QuasiSystem;
use super::{Handle, HandleShape, SkinWeightsReport, WeightKind, WeightsError, conditions, handles};
use rayon::prelude::*;
use understudy_core::laplacian::{tetrahedral_laplacian, tetrahedral_mass};
use understudy_core::sparse_cholesky::SparseCholesky;
use understudy_core::{DVec3, Mesh};

/// Tetrahedra around a mesh with a diagonal of one, and what handles hold there.
#[derive(Debug, Clone, PartialEq)]
pub struct VolumeProblem {
    /// Nodes.
    pub points: Vec<DVec3>,
    /// Tetrahedra.
    pub tetrahedra: Vec<[u32; 4]>,
    /// Held nodes, ascending.
    pub nodes: Vec<u32>,
    /// Their weights, `[nodes][columns]` by rows.
    pub rows: Vec<f64>,
    /// Number of handles.
    pub columns: usize,
}

impl VolumeProblem {
    /// Of a mesh and handles other than cages.
    pub fn new(mesh: &Mesh, handles: &[Handle], cells: usize) -> Result<Self, WeightsError> {
        handles::check(handles, mesh.vertex_count())?;
        if handles.iter().any(|handle| matches!(handle.shape, HandleShape::Cage { .. })) {
            return Err(WeightsError::Setting { name: "a cage", problem: "not for comparison".into() });
        }
        let surface = Surface::new(mesh)?;
        let domain = Domain::of_volume(&surface, &[], cells);
        let mut report = SkinWeightsReport::of(&domain);
        let held = conditions::conditions(handles, &surface, &domain, &mut report)?;
        let tetrahedra = domain.lattice.as_ref().map_or_else(Vec::new, |lattice| lattice.tetrahedra.clone());
        Ok(Self {
            points: domain.points,
            tetrahedra,
            nodes: held.nodes,
            rows: held.rows,
            columns: handles.len(),
        })
    }

    /// Weights of every handle by itself, operators and factors included: `[columns][N]`, rows not yet made one.
    pub fn solve(&self, kind: WeightKind, tolerance: f64, steps: usize) -> Result<Vec<f64>, WeightsError> {
        let (n, h) = (self.points.len(), self.columns);
        let laplacian = tetrahedral_laplacian(&self.points, &self.tetrahedra);
        let mass = tetrahedral_mass(&self.points, &self.tetrahedra);
        let inverse: Vec<f64> = mass.iter().map(|m| 1.0 / m).collect();
        let stiffness = laplacian.sandwich(&inverse);
        let mut held = vec![false; n];
        let mut w = vec![0.0; n * h];
        for (node, row) in self.nodes.iter().zip(self.rows.chunks_exact(h)) {
            held[*node as usize] = true;
            (0..h).for_each(|j| w[j * n + *node as usize] = row[j]);
        }
        let free: Vec<u32> = (0..n as u32).filter(|node| !held[*node as usize]).collect();
        if kind == WeightKind::Quasi {
            let system =
                QuasiSystem { laplacian: &laplacian, stiffness: &stiffness, free: &free, columns: h, steps };
            system.solve(&mut w, &|_, _| true)?;
            return Ok(w);
        }
        let factor = SparseCholesky::new(&stiffness.principal(&free)).ok_or(WeightsError::Factor {
            unknowns: free.len(),
            why: "a part of the mesh holds no handle",
        })?;
        let system = System { stiffness: &stiffness, free: &free, factor: &factor, tolerance };
        w.par_chunks_mut(n).map(|w| system.solve(w).map(|_| ())).collect::<Result<(), _>>()?;
        Ok(w)
    }

    /// `½ Σ_j w_jᵀ L M⁻¹ L w_j`.
    pub fn energy(&self, w: &[f64]) -> f64 {
        let laplacian = tetrahedral_laplacian(&self.points, &self.tetrahedra);
        let mass = tetrahedral_mass(&self.points, &self.tetrahedra);
        let bend = |w: &[f64]| -> f64 {
            laplacian.times(w).iter().zip(&mass).map(|(bend, mass)| 0.5 * bend * bend / mass).sum()
        };
        w.chunks_exact(self.points.len()).map(bend).sum()
    }
}
