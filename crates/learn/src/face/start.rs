//! What networks begin as. Their weights are random, but where all pixels of a map read shared features, these
//! begin as principal components of what the vertices do, which pixels know before the first step: the dense layers
//! have to learn how large they are, and need not find out first what is worth saying. Start at [`first_parameters`].

use super::components::Components;
use super::net::{NetKind, NetSpec};
use super::parameters::ParameterLayout;
use super::trainer::Problem;
use understudy_runtime::face::map_decoder::MapShape;
use understudy_runtime::face::sample::BilinearSample;

/// The first parameters of all networks of a problem. The same seed gives the same ones.
pub(super) fn first_parameters(
    problem: &Problem<'_>,
    specs: &[NetSpec],
    layouts: &[ParameterLayout],
    seed: u64,
) -> Vec<Vec<f32>> {
    let local = problem.locals();
    let seeds = (1u64..).map(|net| seed.wrapping_mul(0x9e37_79b9).wrapping_add(net));
    let start = |((spec, layout), seed): ((&NetSpec, &ParameterLayout), u64)| {
        let mut parameters = layout.initial(seed);
        let NetKind::Map { shape, coordinates } = &spec.kind else { return parameters };
        if shape.shared_features == 0 || problem.start.is_empty() {
            return parameters;
        }
        let poses = problem.start.iter().map(|pose| offsets(problem, spec, &local, *pose));
        let components = Components::new(&poses.collect::<Vec<_>>(), shape.shared_features);
        let samples: Vec<BilinearSample> =
            coordinates.iter().map(|c| BilinearSample::at(*c, shape.map_side())).collect();
        let point = layout.drawing_start() + shape.convolution_parameters();
        lay(&components, shape, &samples, spec.unit, &mut parameters[point..]);
        parameters
    };
    specs.iter().zip(layouts).zip(seeds).map(start).collect()
}

/// What a network is to add to its vertices in a pose, `[vertices][3]`, cm. `local`: numbers of the mesh's vertices
/// among those of the problem.
fn offsets(problem: &Problem<'_>, spec: &NetSpec, local: &[u32], pose: usize) -> Vec<f64> {
    let (now, base) = (problem.poses.vertices_of(pose), problem.base_of(pose));
    let offset = |v: &u32| (now[*v as usize] - base[local[*v as usize] as usize]).as_dvec3().to_array();
    spec.vertices.iter().flat_map(offset).collect()
}

/// Makes pixels read components: what the vertices at a pixel do on average. `sets`: weights and biases of all
/// pixels.
fn lay(components: &Components, shape: &MapShape, samples: &[BilinearSample], unit: f32, sets: &mut [f32]) {
    let (side, outputs, reads) = (shape.map_side(), shape.outputs, shape.reads());
    let (weights, bias) = sets.split_at_mut(shape.sets() * outputs * reads);
    let mut shares = vec![0.0f32; shape.sets()];
    let near = |sample: &BilinearSample| {
        sample.pixels(side).into_iter().zip(sample.weights).filter(|(_, w)| *w > 0.0)
    };
    samples.iter().flat_map(near).for_each(|(pixel, weight)| shares[pixel] += weight);
    for (vertex, sample) in samples.iter().enumerate() {
        for (pixel, weight) in near(sample) {
            let share = weight / (shares[pixel] * unit);
            for output in 0..3 {
                let (place, number) = (pixel * outputs + output, vertex * 3 + output);
                bias[place] += share * components.mean[number] as f32;
                let own = &mut weights[place * reads + shape.hidden..(place + 1) * reads];
                own.iter_mut().zip(&components.ways).for_each(|(w, way)| *w += share * way[number] as f32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Vec2;

    #[test]
    fn a_pixel_knows_what_its_vertices_do_on_average() {
        let shape = MapShape {
            side: 2,
            channels: 1,
            hidden: 3,
            doublings: 0,
            outputs: 3,
            untied: true,
            shared_features: 2,
        };
        // The first two vertices share a pixel, the third is alone.
        let samples = [Vec2::ZERO, Vec2::ZERO, Vec2::ONE].map(|place| BilinearSample::at(place, 2));
        let components = Components {
            mean: (0..9).map(f64::from).collect(),
            ways: vec![(0..9).map(|i| 2.0 * f64::from(i)).collect()],
        };
        let mut sets = vec![0.0; shape.sets() * shape.outputs * (shape.reads() + 1)];
        lay(&components, &shape, &samples, 0.5, &mut sets);
        let (weights, bias) = sets.split_at(shape.sets() * shape.outputs * shape.reads());
        let way = |pixel: usize| [0, 1, 2].map(|o| weights[(pixel * 3 + o) * 5..][..5].to_vec());
        let row = |number: f32| vec![0.0, 0.0, 0.0, number, 0.0];
        assert_eq!(bias, [3.0, 5.0, 7.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 12.0, 14.0, 16.0]);
        assert_eq!(way(0), [6.0, 10.0, 14.0].map(row));
        assert_eq!(way(3), [24.0, 28.0, 32.0].map(row));
        assert_eq!(way(1), [0.0; 3].map(row));
    }
}
