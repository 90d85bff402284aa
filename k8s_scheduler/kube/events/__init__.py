"""Events about pods: gathered into series, limited, and written when there is time."""
