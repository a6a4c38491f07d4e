//! What the compiler says: one mistake a file, each message on the token that is wrong.
