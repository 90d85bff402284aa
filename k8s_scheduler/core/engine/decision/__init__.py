"""One decision: judge the nodes, score those that pass, pick one."""
