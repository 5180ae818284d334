//! Errors: the texts are those of the command line, the class says whose fault it is.

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use understudy_jobs::JobError;

create_exception!(understudy, UnderstudyError, PyRuntimeError, "Something that is not the input's fault.");
create_exception!(
    understudy,
    BadInputError,
    PyValueError,
    "A file, a setting or an array that cannot be used."
);

/// Of a job.
pub fn of_job(error: &JobError) -> PyErr {
    match error.is_bad_input() {
        true => BadInputError::new_err(error.to_string()),
        false => UnderstudyError::new_err(error.to_string()),
    }
}

/// Of anything that was given.
pub fn bad(error: impl ToString) -> PyErr {
    BadInputError::new_err(error.to_string())
}
