"""Errors of this package. Their messages are for the operator or the client."""


class InvalidSetting(Exception):
    """An environment variable has an invalid value."""


class AddressInUse(Exception):
    """The server cannot listen at the address."""


class FolderInUse(Exception):
    """Another service runs on the data folder."""


class KeyNotFound(Exception):
    """No valid key has this token, or not exactly one key has this id or name."""
