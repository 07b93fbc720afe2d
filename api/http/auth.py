"""Authentication and authorisation by API key, before the rest of the request is read."""

from starlette.requests import Request

from api.accounts.keys import BearerKey, Keyring, Scope, is_well_formed
from api.errors import KeyNotFound
from api.http.headers import header
from api.http.problems import Problem

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="readership"'}
_REJECTED = {"WWW-Authenticate": 'Bearer realm="readership", error="invalid_token"'}


async def key_of(request: Request, keyring: Keyring) -> BearerKey:
    """Return the valid key of the request. Raises Problem `unauthenticated`."""
    authorization = header(request, b"authorization")
    if authorization is None:
        raise Problem("unauthenticated", "the request has no Authorization header", headers=_CHALLENGE)
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise Problem("unauthenticated", "the Authorization header is not `Bearer <API key>`", headers=_CHALLENGE)
    if (key := keyring.cached(token)) is not None:
        return key
    if not is_well_formed(token):
        detail = "the API key is malformed: its prefix, length or checksum is wrong; copy it again"
        raise Problem("unauthenticated", detail, headers=_REJECTED)
    try:
        return await keyring.shared_look_up(token)
    except KeyNotFound as error:
        raise Problem("unauthenticated", str(error), headers=_REJECTED) from None


async def key_for(request: Request, keyring: Keyring, project: str, scope: Scope) -> BearerKey:
    """Return the key of the request, if it is valid for this project and scope.

    The error is the same for another existing project and for a project that does not exist.

    Raises:
        Problem: `unauthenticated` or `forbidden`.
    """
    key = await key_of(request, keyring)
    if key.project != project:
        raise Problem("forbidden", "the API key belongs to another project")
    require_scope(key, scope)
    return key


def require_scope(key: BearerKey, needed: Scope) -> None:
    """Raise Problem `forbidden` if the key's scope does not include the needed one."""
    if not key.allows(needed):
        scopes = "`write`" if needed == "write" else f"`{needed}` or `write`"
        raise Problem("forbidden", f"the API key has the scope `{key.scope}`; this operation needs {scopes}")
