//! Requests for a table instead of JSON (K16).

use crate::error::ApiError;
use crate::v1::param::{FORMAT_CSV, FORMAT_JSON, Param};
use crate::v1::query::{Values, unknown_value};

impl Values<'_> {
    pub(super) fn is_table(&self) -> Result<bool, ApiError> {
        match self.get(Param::Format) {
            None | Some(FORMAT_JSON) => Ok(false),
            Some(FORMAT_CSV) => Ok(true),
            Some(other) => {
                let keys = [FORMAT_JSON, FORMAT_CSV].into_iter();
                Err(ApiError::param(Param::Format.name(), unknown_value("format", other, keys)))
            }
        }
    }

    /// Refuses a table together with a parameter that changes the shape of the response.
    pub(super) fn refuse_table(&self, other: Param) -> Result<(), ApiError> {
        if !self.is_table()? {
            return Ok(());
        }
        let other = other.name();
        let text = format!("`format=csv` cannot be combined with `{other}`; leave one of them out");
        Err(ApiError::param(Param::Format.name(), text))
    }
}
