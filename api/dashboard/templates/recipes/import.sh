# Once, with the rotated logs. Importing a log again adds only its new lines.
readership --data /var/lib/readership import {{ project }} '{{ log }}*'

# From another machine, for example every five minutes
ssh web cat {{ log }} | readership --data /var/lib/readership import {{ project }} -

# Continuously
readership --data /var/lib/readership import {{ project }} {{ log }} --follow
