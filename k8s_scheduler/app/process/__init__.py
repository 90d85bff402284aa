"""The process itself: memory, garbage collector, event loop, clocks, exit codes."""
