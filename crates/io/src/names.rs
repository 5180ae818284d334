//! Names that are told apart: two things of one name in a file become `arm` and `arm_2`.

use std::collections::HashMap;

/// Hands out names, each once: `arm`, `arm_2`, `arm_3`.
#[derive(Debug, Default)]
pub(crate) struct UniqueNames {
    taken: HashMap<String, usize>,
}

impl UniqueNames {
    /// The name itself, or with a number where it is taken.
    pub fn take(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while self.taken.contains_key(&name) {
            let uses = self.taken.entry(wanted.to_owned()).or_insert(1);
            *uses += 1;
            name = format!("{wanted}_{uses}");
        }
        self.taken.insert(name.clone(), 1);
        name
    }
}
