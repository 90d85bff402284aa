"""Code that several plugins share, because plugins may not import each other."""
