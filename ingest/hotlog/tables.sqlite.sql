-- CREATE()
CREATE TABLE IF NOT EXISTS answers ( project_id TEXT NOT NULL, "key" TEXT NOT NULL, fingerprint BLOB NOT NULL, receipt BLOB NOT NULL, seen_s INTEGER NOT NULL, PRIMARY KEY (project_id, "key") ) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS event_ids ( id BLOB NOT NULL, seen_s INTEGER NOT NULL, PRIMARY KEY (id) ) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS new_value_days ( project_id TEXT NOT NULL, day INTEGER NOT NULL, "column" TEXT NOT NULL, "values" INTEGER NOT NULL, other_hits INTEGER NOT NULL, PRIMARY KEY (project_id, day, "column") ) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen_values ( id BLOB NOT NULL, day INTEGER NOT NULL, PRIMARY KEY (id) ) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS event_ids_seen ON event_ids (seen_s);
CREATE INDEX IF NOT EXISTS seen_values_day ON seen_values (day)

-- ADD_EVENT_ID(id0 now_s)
INSERT INTO event_ids (id, seen_s) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET seen_s = excluded.seen_s WHERE event_ids.seen_s <= excluded.seen_s - 604800

-- ADD_MANY_EVENT_IDS(id0 now_s id1 now_s id2 now_s id3 now_s id4 now_s id5 now_s id6 now_s id7 now_s id8 now_s id9 now_s id10 now_s id11 now_s id12 now_s id13 now_s id14 now_s id15 now_s id16 now_s id17 now_s id18 now_s id19 now_s id20 now_s id21 now_s id22 now_s id23 now_s id24 now_s id25 now_s id26 now_s id27 now_s id28 now_s id29 now_s id30 now_s id31 now_s id32 now_s id33 now_s id34 now_s id35 now_s id36 now_s id37 now_s id38 now_s id39 now_s id40 now_s id41 now_s id42 now_s id43 now_s id44 now_s id45 now_s id46 now_s id47 now_s id48 now_s id49 now_s id50 now_s id51 now_s id52 now_s id53 now_s id54 now_s id55 now_s id56 now_s id57 now_s id58 now_s id59 now_s id60 now_s id61 now_s id62 now_s id63 now_s id64 now_s id65 now_s id66 now_s id67 now_s id68 now_s id69 now_s id70 now_s id71 now_s id72 now_s id73 now_s id74 now_s id75 now_s id76 now_s id77 now_s id78 now_s id79 now_s id80 now_s id81 now_s id82 now_s id83 now_s id84 now_s id85 now_s id86 now_s id87 now_s id88 now_s id89 now_s id90 now_s id91 now_s id92 now_s id93 now_s id94 now_s id95 now_s id96 now_s id97 now_s id98 now_s id99 now_s)
INSERT INTO event_ids (id, seen_s) VALUES (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?) ON CONFLICT (id) DO UPDATE SET seen_s = excluded.seen_s WHERE event_ids.seen_s <= excluded.seen_s - 604800

-- KNOWN_EVENT_IDS(id0 id1 id2 id3 id4 id5 id6 id7 id8 id9 id10 id11 id12 id13 id14 id15 id16 id17 id18 id19 id20 id21 id22 id23 id24 id25 id26 id27 id28 id29 id30 id31 id32 id33 id34 id35 id36 id37 id38 id39 id40 id41 id42 id43 id44 id45 id46 id47 id48 id49 id50 id51 id52 id53 id54 id55 id56 id57 id58 id59 id60 id61 id62 id63 id64 id65 id66 id67 id68 id69 id70 id71 id72 id73 id74 id75 id76 id77 id78 id79 id80 id81 id82 id83 id84 id85 id86 id87 id88 id89 id90 id91 id92 id93 id94 id95 id96 id97 id98 id99 since_s)
SELECT event_ids.id FROM event_ids WHERE event_ids.id IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) AND event_ids.seen_s + 0 > ?

-- ADD_KNOWN_EVENT_ID(id now_s)
INSERT INTO event_ids (id, seen_s) VALUES (?, ?) ON CONFLICT DO NOTHING

-- DELETE_EXPIRED_EVENT_IDS(until_s limit)
DELETE FROM event_ids WHERE event_ids.id IN (SELECT event_ids.id FROM event_ids WHERE event_ids.seen_s <= ? LIMIT ? OFFSET 0)

-- DELETE_EVENT_IDS_OF_PROJECT(first last limit)
DELETE FROM event_ids WHERE event_ids.id IN (SELECT event_ids.id FROM event_ids WHERE event_ids.id BETWEEN ? AND ? LIMIT ? OFFSET 0)

-- EARLIER_ANSWER(project key since_s)
SELECT answers.fingerprint, answers.receipt FROM answers WHERE answers.project_id = ? AND answers."key" = ? AND answers.seen_s > ?

-- ADD_ANSWER(project key fingerprint receipt now_s)
INSERT INTO answers (project_id, "key", fingerprint, receipt, seen_s) VALUES (?, ?, ?, ?, ?) ON CONFLICT (project_id, "key") DO UPDATE SET fingerprint = excluded.fingerprint, receipt = excluded.receipt, seen_s = excluded.seen_s

-- DELETE_EXPIRED_ANSWERS(until_s limit)
DELETE FROM answers WHERE (answers.project_id, answers."key") IN (SELECT answers.project_id, answers."key" FROM answers WHERE answers.seen_s <= ? LIMIT ? OFFSET 0)

-- DELETE_ANSWERS_OF_PROJECT(project limit)
DELETE FROM answers WHERE (answers.project_id, answers."key") IN (SELECT answers.project_id, answers."key" FROM answers WHERE answers.project_id = ? LIMIT ? OFFSET 0)

-- SEEN_VALUE(id)
SELECT seen_values.id, seen_values.day FROM seen_values WHERE seen_values.id = ?

-- ADD_SEEN_VALUE(id day)
INSERT INTO seen_values (id, day) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET day = excluded.day

-- DELETE_UNSEEN_VALUES(until_day limit)
DELETE FROM seen_values WHERE seen_values.id IN (SELECT seen_values.id FROM seen_values WHERE seen_values.day <= ? LIMIT ? OFFSET 0)

-- DELETE_VALUES_OF_PROJECT(first last limit)
DELETE FROM seen_values WHERE seen_values.id IN (SELECT seen_values.id FROM seen_values WHERE seen_values.id BETWEEN ? AND ? LIMIT ? OFFSET 0)

-- NEW_VALUES(project day column)
SELECT new_value_days."values" FROM new_value_days WHERE new_value_days.project_id = ? AND new_value_days.day = ? AND new_value_days."column" = ?

-- COUNT_NEW_VALUES(project day column values hits)
INSERT INTO new_value_days (project_id, day, "column", "values", other_hits) VALUES (?, ?, ?, ?, ?) ON CONFLICT (project_id, day, "column") DO UPDATE SET "values" = (new_value_days."values" + excluded."values"), other_hits = (new_value_days.other_hits + excluded.other_hits)

-- CAPPED_DAYS(project)
SELECT new_value_days.day, new_value_days."column", new_value_days.other_hits FROM new_value_days WHERE new_value_days.project_id = ? AND new_value_days.other_hits > 0 ORDER BY new_value_days.day, new_value_days."column"

-- DELETE_OLD_VALUE_DAYS(until_day limit)
DELETE FROM new_value_days WHERE (new_value_days.project_id, new_value_days.day, new_value_days."column") IN (SELECT new_value_days.project_id, new_value_days.day, new_value_days."column" FROM new_value_days WHERE new_value_days.day <= ? LIMIT ? OFFSET 0)

-- DELETE_VALUE_DAYS_OF_PROJECT(project limit)
DELETE FROM new_value_days WHERE (new_value_days.project_id, new_value_days.day, new_value_days."column") IN (SELECT new_value_days.project_id, new_value_days.day, new_value_days."column" FROM new_value_days WHERE new_value_days.project_id = ? LIMIT ? OFFSET 0)
