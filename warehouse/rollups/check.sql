-- What the doctor compares the visitors of a rollup with. It shares no expression with the reports, except for the choice
-- among several agents or devices of a visitor.

-- EVIDENCE
-- Creates the table of the weights of the evidence of visitors.
CREATE OR REPLACE TEMP TABLE truth AS
WITH human AS (FROM {hits} WHERE traffic = 'human' AND visitor IS NOT NULL),
logged AS (SELECT project_id, date, count(*) AS views FROM {hits} WHERE source = 'log' GROUP BY ALL),
fetched AS (SELECT project_id, date, sum(loads) AS loads FROM {loads} GROUP BY ALL),
with_assets AS (
    SELECT project_id, date FROM fetched LEFT JOIN logged USING (project_id, date)
    WHERE loads > 0 AND loads * 99 >= coalesce(views, 0)
), addressed AS (
    SELECT *, split_part(split_part(substr(referrer, strpos(referrer, ':') + 3), '#', 1), '?', 1) AS rest FROM human
), links AS (
    SELECT project_id, date, visitor, ts,
        rtrim(if(contains(rest, '/'), substr(rest, strpos(rest, '/')), ''), '/') AS tail FROM addressed
    WHERE channel IS NULL AND referrer_host IS NOT NULL AND referrer[strpos(referrer, ':'):][:3] = '://'
    UNION ALL SELECT project_id, date, visitor, ts, '' FROM human
    WHERE channel IS NULL AND referrer_host IS NOT NULL AND referrer[strpos(referrer, ':'):][:3] <> '://'
), linked AS (
    SELECT *, CASE WHEN ends_with(tail, '/index.html') THEN tail[:-12]
        WHEN ends_with(tail, '/index.htm') THEN tail[:-11] ELSE tail END AS page FROM links
)
SELECT project_id AS of_project, date AS of_date, visitor AS of_visitor, CASE
    WHEN EXISTS (FROM human AS h WHERE h.project_id = p.project_id AND h.date = p.date AND h.visitor = p.visitor
        AND h.source = 'beacon') THEN 1
    WHEN EXISTS (FROM {loads} AS l WHERE l.project_id = p.project_id AND l.date = p.date AND l.visitor = p.visitor)
        AND EXISTS (FROM with_assets AS w WHERE w.project_id = p.project_id AND w.date = p.date) THEN 64
    WHEN EXISTS (
        FROM linked AS l JOIN human AS h ON h.project_id = l.project_id AND h.date = l.date AND h.visitor = l.visitor
        WHERE l.project_id = p.project_id AND l.date = p.date AND l.visitor = p.visitor
        AND h.path = if(l.page = '', '/', l.page) AND h.ts < l.ts) THEN 4_096
    WHEN EXISTS (FROM with_assets AS w WHERE w.project_id = p.project_id AND w.date = p.date) THEN 262_144
    ELSE 16_777_216 END AS weight
FROM (SELECT DISTINCT project_id, date, visitor FROM human) AS p

-- VISITORS
-- Rows for each visitor and visit, with the columns and measures of the cube VISITORS.
WITH seen AS (
    SELECT *, {sources} AS set,
        {quarter} AS quarter, {agent} AS agent_key, {device} AS device_key, {tie} AS tie
    FROM {hits} WHERE visitor IS NOT NULL
), breaks AS (
    SELECT *, if(ts - lag(ts) OVER same <= INTERVAL 30 MINUTE, 0, 1) AS is_new FROM seen WHERE traffic = 'human'
    WINDOW same AS (PARTITION BY project_id, date, visitor, source ORDER BY ts, path, tie)
), numbered AS (
    SELECT *, sum(is_new) OVER (PARTITION BY project_id, date, visitor, source ORDER BY ts, path, tie) AS number,
    FROM breaks
), grouped AS (
    SELECT project_id, date, visitor, unnest(arg_min(
            {{'path': path, {values}, 'quarter': quarter,
               'agent_key': agent_key, 'device_key': device_key, 'set': set}}, (ts, path, tie))),
        arg_max(path, (ts, path, tie)) AS last, count(*) AS views, min(ts) AS began, max(ts) AS ended, source
    FROM numbered GROUP BY project_id, date, visitor, source, number
), visits AS (
    SELECT *, {done} FROM (SELECT *, lead(began) OVER others AS following FROM grouped
        WINDOW others AS (PARTITION BY project_id, date, visitor, source ORDER BY began)) AS visit
), seen_by_value AS (
    SELECT project_id, date, visitor, unnest({dimensions}) AS of, quarter, agent_key, device_key, set FROM seen
    UNION ALL
    SELECT project_id, date, visitor, unnest({pages}), quarter, agent_key, device_key, set FROM visits
), counted AS (
    SELECT project_id, date, of, min(quarter) AS quarter, max(agent_key) AS agent_key, max(device_key) AS device_key,
        bit_or(set) AS sources, 1 AS visitors, 0 AS visits, 0 AS bounces, 0 AS visit_seconds, 0 AS visit_views
    FROM seen_by_value GROUP BY project_id, date, visitor, of
    UNION ALL
    SELECT project_id, date, of, quarter, agent_key, device_key, set, 0, 1, bounces, seconds, views
    FROM (SELECT *, unnest(({dimensions}[:-2] || {pages})) AS of FROM visits)
), agents AS (
    SELECT DISTINCT agent_key, agent, operator, purpose, {verification} AS verification FROM seen
), devices AS (SELECT DISTINCT device_key, browser, os, device FROM seen)
SELECT project_id, date, of.name AS dimension, of.value AS value, agent, operator, purpose, verification,
    if(of.name = '', browser, NULL) AS browser, if(of.name = '', os, NULL) AS os,
    if(of.name = '', device, NULL) AS device, if(of.name = 'quarter', quarter, NULL)::UTINYINT AS quarter, sources,
    visitors, visits, bounces, visit_seconds, visit_views
FROM counted LEFT JOIN agents USING (agent_key) LEFT JOIN devices USING (device_key)
