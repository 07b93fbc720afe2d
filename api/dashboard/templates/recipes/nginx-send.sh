#!/bin/sh
# /usr/local/bin/readership-send: posts the page views since the last run. Run it every minute, from cron or a timer,
# as a user who may write /var/log/nginx and reload nginx. Each view has an id: a post that is repeated counts once.
set -eu
: "${READERSHIP_KEY:?is the API key}"
log="${READERSHIP_LOG:-/var/log/nginx/readership.ndjson}"
parts="$log.parts"
mkdir -p "$parts"

if [ -z "$(ls "$parts")" ] && [ -s "$log" ]; then
    mv "$log" "$log.moved"
    nginx -s reopen
    sleep 1
    split -C 1m "$log.moved" "$parts/part-"
    rm "$log.moved"
fi
for part in "$parts"/part-*; do
    [ -e "$part" ] || break
    status=$(curl -sS -o "$log.answer" -w '%{http_code}' {{ address }}/v1/analytics/{{ project }}/hits \
        -H "Authorization: Bearer $READERSHIP_KEY" -H 'Content-Type: application/x-ndjson' --data-binary "@$part")
    case "$status" in
        202 | 400) rm "$part" ;; # 400: every line was invalid
        *) cat "$log.answer" >&2; exit 1 ;;
    esac
done
