"""The contract between plugins and the engine."""
