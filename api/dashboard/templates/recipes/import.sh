# Once, with the rotated logs. Importing a log again adds only its new lines.
{{ command }} import {{ project }} '{{ log }}*'

# From another machine, for example every five minutes
ssh web cat {{ log }} | {{ command }} import {{ project }} -

# Continuously
{{ command }} import {{ project }} {{ log }} --follow
