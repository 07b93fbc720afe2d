#!/bin/sh
# git calls this script with "Username for 'https://host': " or "Password for 'https://user@host': ".
# Answer only for the host of the repository: after a redirect git may ask for the credentials of another host.
case "$1" in
"Username for '$READERSHIP_USERNAME_FOR': ") echo "$READERSHIP_USERNAME" ;;
"Password for '$READERSHIP_PASSWORD_FOR': ") cat "$READERSHIP_PASSWORD" ;;
*) exit 1 ;;
esac
