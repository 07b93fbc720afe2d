#!/bin/sh
# git asks "Username for 'https://host': " and "Password for 'https://user@host': ".
# Answer only for the repository's own host: after a redirect git may ask for another one.
case "$1" in
"Username for '$READERSHIP_USERNAME_FOR': ") echo "$READERSHIP_USERNAME" ;;
"Password for '$READERSHIP_PASSWORD_FOR': ") cat "$READERSHIP_PASSWORD" ;;
*) exit 1 ;;
esac
