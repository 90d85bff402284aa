"""Following another scheduler: its bindings judged by our engine, on the state before each."""
