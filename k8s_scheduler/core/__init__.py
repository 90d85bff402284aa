"""The pure core: messages in, instructions out.

No I/O, no await, no clock, no randomness of its own; a test over the syntax tree of every file
here holds it to that. Layers: messages < state < framework < (plugins | queue) < engine <
scheduler.
"""
