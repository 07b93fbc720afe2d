"""Sentences for errors of the operating system; Python prints "[Errno 2] No such file or directory: '/x'"."""

import errno
import re

_WITH_PATH = {
    errno.EACCES: "this user has no permission to open {path}",
    errno.EEXIST: "{path} is a file, not a folder",
    errno.EIO: "the disk cannot read or write {path}",
    errno.EISDIR: "{path} is a folder, not a file",
    errno.ENOENT: "there is no file {path}",
    errno.ENOSPC: "the disk is full: {path} cannot be written",
    errno.ENOTDIR: "{path} cannot be created: a part of its path is a file, not a folder",
    errno.EPERM: "this user has no permission to change {path}",
    errno.EROFS: "{path} is on a read-only file system",
}
_WITHOUT_PATH = {
    errno.EIO: "the disk cannot be read or written",
    errno.EMFILE: "too many files are open; raise the limit with ulimit -n",
    errno.ENOSPC: "the disk is full",
}
_NUMBER = re.compile(r"\[errno -?[0-9]+\] ?", re.IGNORECASE)


def sentence(error: OSError) -> str:
    """Return what happened to which path, without the number of the error."""
    if error.filename is not None and error.errno in _WITH_PATH:
        return _WITH_PATH[error.errno].format(path=error.filename)
    if error.errno in _WITHOUT_PATH:
        return _WITHOUT_PATH[error.errno]
    text = _NUMBER.sub("", error.strerror or str(error))
    return text if error.filename is None else f"{error.filename}: {text}"
