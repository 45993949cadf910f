"""The in-tree plugins, one module each; ``registry`` lists them, ``out_of_tree`` finds others."""
