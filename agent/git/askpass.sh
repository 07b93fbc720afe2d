#!/bin/sh
# git asks "Username for 'https://host': " and "Password for 'https://user@host': ".
# Only the repository's own host is answered: a redirect may lead git, and its question, to another.
case "$1" in
"Username for '$READERSHIP_USERNAME_FOR': ") echo "$READERSHIP_USERNAME" ;;
"Password for '$READERSHIP_PASSWORD_FOR': ") cat "$READERSHIP_PASSWORD" ;;
*) exit 1 ;;
esac
