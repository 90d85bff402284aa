"""Shapes of pods and what is known about them: evaluations that are kept and caught up."""
