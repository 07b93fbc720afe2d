"""Errors of this package. Their messages are for the operator or the client."""


class InvalidSetting(Exception):
    """A setting is unknown, or its value is invalid."""


class AddressInUse(Exception):
    """The server cannot listen at the address."""


class FolderInUse(Exception):
    """Another process uses the data folder, or the hot log of its nodes."""


class KeyNotFound(Exception):
    """No valid key has this token, or not exactly one valid key matches this id, start or name."""


class KeyExists(Exception):
    """A key with the id of a new key exists already, because the request that creates the key was repeated."""


class AccountError(Exception):
    """A user cannot be created, changed or found."""


class InvalidName(AccountError):
    """The name of a new user is empty, too long or contains invisible characters."""


class InvalidPassword(AccountError):
    """A new password is too short or too long."""


class UserNotFound(AccountError):
    """No user has this name or id."""


class ShareLinkNotFound(Exception):
    """No share link has this id."""
