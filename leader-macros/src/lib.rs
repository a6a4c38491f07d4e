//! The attribute macros of `leader-core`.

use proc_macro::TokenStream;

/// Runs a function only on the leader of its group.
#[proc_macro_attribute]
pub fn leader_only(_options: TokenStream, item: TokenStream) -> TokenStream {
    item
}
