"""Charts as SVG, computed from numbers alone: no clock, no request, no inline style.

- `time_chart`: bars of people, AI and other bots over time, and the names of its intervals.
- `sparkline`: small stacked bars of people and AI over time, without axes.
- `bar`: the bar behind a row of a table.

The colours are in `static/charts.css`. `static/chart.js` adds the highlight and the tooltip, whose texts are the cells
of the chart's table.
"""
