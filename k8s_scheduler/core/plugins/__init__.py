"""The built-in plugins, one file each, under kube-scheduler's names.

Order in a file: docstring, reasons, arguments, class. Plugins never import each other.
"""
