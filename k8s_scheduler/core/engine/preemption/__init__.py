"""PostFilter and preemption: the search for victims in steps, and seeing them leave."""
