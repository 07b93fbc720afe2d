#!/bin/sh
# /usr/local/bin/readership-send: posts the page views since the last run, as a user who may reload nginx.
# What was not accepted is sent again by the next run; each view has an id and counts once.
set -eu
: "${READERSHIP_KEY:?is the API key}"
log="${READERSHIP_LOG:-/var/log/nginx/readership.ndjson}"
parts="$log.parts"
mkdir -p "$parts"
exec 9> "$log.lock"
flock -n 9 || exit 0

if [ -e "$log.moved" ]; then # a run was interrupted before it posted anything
    rm -f "$parts"/part-*
elif [ -s "$log" ] && [ -z "$(ls "$parts")" ]; then
    mv "$log" "$log.moved"
    nginx -s reopen
    sleep 1
fi
if [ -e "$log.moved" ]; then
    iconv -c -f utf-8 -t utf-8 "$log.moved" | split -C 1m - "$parts/part-" # without bytes that are not UTF-8
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
