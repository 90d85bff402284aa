"""The base of everything a configuration file holds."""

import msgspec


class Configured(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A part of the file: frozen, in camel case there, with no fields but its own."""
