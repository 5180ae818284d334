//! A twin that follows points, in the browser: one drag at a time, through arrays of numbers.

use std::sync::Arc;
use understudy_runtime::ik::{Correction, PointDrag, PointIk, PointSolver, Wanted};
use understudy_runtime::{Twin, Vec3};

/// Solves, and remembers the pose that is dragged from.
pub struct Following {
    solver: PointSolver,
    held: Option<PointDrag>,
    /// Places of the points, cm.
    pub points: Vec<Vec3>,
    /// Per point: what is asked of it (0 nothing, 1 to stay, 2 to move), where it shall be (x, y, z in cm), and the
    /// direction in which it is looked at (zero where depth counts as much as the rest).
    pub targets: Vec<[f32; Following::NUMBERS]>,
}

impl Following {
    /// Numbers per target.
    pub const NUMBERS: usize = 7;

    /// What the file says of points; nothing where it says nothing.
    pub fn read(bytes: &[u8], twin: &Twin) -> Result<Option<Self>, String> {
        let ik = PointIk::read(bytes, twin).map_err(|error| error.to_string())?;
        Ok(ik.map(|ik| {
            let count = ik.points().len();
            let solver = Arc::new(ik).solver();
            let (points, targets) = (solver.ik().rest().to_vec(), vec![[0.0; Self::NUMBERS]; count]);
            Self { solver, held: None, points, targets }
        }))
    }

    /// What it solves with, for others.
    pub fn ik(&self) -> Arc<PointIk> {
        Arc::clone(self.solver.ik())
    }

    pub fn count(&self) -> usize {
        self.points.len()
    }

    /// Names, vertices, regions and places at rest.
    pub fn describe(&self) -> serde_json::Value {
        let ik = self.solver.ik();
        let point = |(index, point): (usize, &understudy_runtime::ik::ControlPoint)| {
            let region = ik.region_of(index).and_then(|region| ik.regions().nth(region));
            serde_json::json!({
                "name": point.name, "vertex": point.vertex,
                "region": region.map(|(name, ..)| name), "rest": ik.rest()[index].to_array(),
            })
        };
        ik.points().iter().enumerate().map(point).collect()
    }

    pub fn hold(&mut self, controls: &[f32]) -> Result<usize, String> {
        let held = PointDrag::begin(&mut self.solver, controls).map_err(|error| error.to_string())?;
        self.points.copy_from_slice(held.places().0);
        self.held = Some(held);
        Ok(1)
    }

    pub fn drag(&mut self, steps: usize, controls: &mut [f32]) -> Result<usize, String> {
        let held = self.held.as_mut().ok_or("no pose is held: a drag begins with one")?;
        let (mut wanted, mut pinned) = (Vec::new(), Vec::new());
        for (point, target) in self.targets.iter().enumerate() {
            let [what, numbers @ ..] = target;
            let three = |from: usize| Vec3::new(numbers[from], numbers[from + 1], numbers[from + 2]);
            if *what == 1.0 {
                pinned.push(point);
            } else if *what == 2.0 {
                wanted.push(Wanted { point, place: three(0), sight: three(3) });
            } else if *what != 0.0 {
                return Err(format!("point {point}: {what} is asked of it; 0, 1 and 2 are known"));
            }
        }
        let how = Correction { steps, ..Correction::default() };
        let done = held.to(&mut self.solver, &wanted, &pinned, &how, controls).and_then(|_| {
            let Self { solver, points, .. } = self;
            solver.points(controls, points)
        });
        done.map(|()| 1).map_err(|error| error.to_string())
    }
}
