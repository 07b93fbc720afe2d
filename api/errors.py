"""What can go wrong at the doors. Messages are for the operator or the caller."""


class InvalidSetting(Exception):
    """An environment variable is not of the form asked for."""


class AddressInUse(Exception):
    """The address to listen at is taken, or cannot be had."""


class FolderInUse(Exception):
    """Another service runs on the data folder."""


class KeyNotFound(Exception):
    """No key that is good has this token, id or name."""
