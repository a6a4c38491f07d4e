//! The tasks of an instance's fleet.

use std::any::Any;
use std::sync::Arc;

use super::Instance;
use crate::tasks::handle::Tasks;
use crate::tasks::hub::Hub;

impl Instance {
    /// The tasks of this instance's fleet: to store, read and change them.
    ///
    /// # Panics
    /// Never: every instance has them.
    #[must_use]
    pub fn tasks(&self) -> Tasks {
        let companion = self.shared.config.companion.clone();
        let hub = companion.and_then(|companion| (companion as Arc<dyn Any + Send + Sync>).downcast::<Hub>().ok());
        Tasks::new(
            Arc::clone(&self.shared),
            hub.expect("the start gives every instance its tasks"),
        )
    }
}
