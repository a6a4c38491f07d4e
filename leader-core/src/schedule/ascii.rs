//! What the standard library cannot yet do in a `const fn` of the oldest supported compiler.

/// Alike but for the case of ASCII letters.
pub(super) const fn is_alike(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if !a[i].eq_ignore_ascii_case(&b[i]) {
            return false;
        }
        i += 1;
    }
    true
}
