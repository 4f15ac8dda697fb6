-- DuckDB macros over the archive of Linesman (docs/history.md).
--
--   odds_at(t)    prices, one row for each outcome, with last_update
--   scores_at(t)  the state of events
--   events_at(t)  events, with the markets that have prices
--
-- Each returns what the API returns as of t, an instant such as TIMESTAMPTZ '2026-11-14 23:38:00Z': that of the last
-- publication at or before it. Run this again before a query of newer data: files that were merged are deleted
-- an hour later.

CREATE OR REPLACE TEMP TABLE linesman_files AS
SELECT file.table AS of_table, {root} || '/' || file.path AS path, file.lineage AS lineage
FROM (SELECT unnest(files) AS file FROM read_json({root} || '/files.json', maximum_object_size = 1000000000));

-- A table without files is read as one without rows: the files of publications are used in its place.
SET VARIABLE linesman_epochs = (SELECT list(path) FROM linesman_files WHERE of_table = 'epochs');
SET VARIABLE linesman_odds = (
  SELECT coalesce(list(path), getvariable('linesman_epochs')) FROM linesman_files WHERE of_table = 'odds');
SET VARIABLE linesman_reads = (
  SELECT coalesce(list(path), getvariable('linesman_epochs')) FROM linesman_files WHERE of_table = 'reads');
SET VARIABLE linesman_scores = (
  SELECT coalesce(list(path), getvariable('linesman_epochs')) FROM linesman_files WHERE of_table = 'scores');
SET VARIABLE linesman_events = (
  SELECT coalesce(list(path), getvariable('linesman_epochs')) FROM linesman_files WHERE of_table = 'events');

-- The publication in effect at t. If a clock was set back or a log was lost, the one made last is used.
CREATE OR REPLACE TEMP MACRO linesman_publication(t) AS TABLE
SELECT files.lineage, epochs.seq
FROM read_parquet(getvariable('linesman_epochs'), hive_partitioning = false, union_by_name = true, filename = true)
  AS epochs
JOIN linesman_files AS files ON files.path = epochs.filename
WHERE epochs.published_at <= t
ORDER BY epochs.published_at DESC, files.lineage DESC, epochs.seq DESC
LIMIT 1;

-- The rows of a table up to that publication. A lineage begins with rows for its complete state.
CREATE OR REPLACE TEMP MACRO linesman_odds_rows(t) AS TABLE
SELECT rows.*
FROM (
  SELECT *
  FROM read_parquet(getvariable('linesman_odds'), hive_partitioning = false, union_by_name = true, filename = true)
  UNION ALL BY NAME
  SELECT NULL::UBIGINT AS seq, NULL::TIMESTAMPTZ AS ts, NULL::BOOLEAN AS shown, NULL::VARCHAR AS sport,
    NULL::VARCHAR AS event_id, NULL::VARCHAR AS record_id, NULL::VARCHAR AS bookmaker, NULL::VARCHAR AS market,
    NULL::VARCHAR AS pairing, NULL::BIGINT AS outcomes, NULL::BIGINT AS n, NULL::VARCHAR AS name,
    NULL::VARCHAR AS quoted, NULL::UBIGINT AS num, NULL::UBIGINT AS den, NULL::DOUBLE AS decimal,
    NULL::BIGINT AS american, NULL::DECIMAL(18, 2) AS point, NULL::TIMESTAMPTZ AS last_update,
    NULL::TIMESTAMPTZ AS beat_seen
  WHERE false
) AS rows
JOIN linesman_files AS files ON files.path = rows.filename AND files.of_table = 'odds'
JOIN linesman_publication(t) AS publication ON publication.lineage = files.lineage AND rows.seq <= publication.seq;

CREATE OR REPLACE TEMP MACRO linesman_reads_rows(t) AS TABLE
SELECT rows.*
FROM (
  SELECT *
  FROM read_parquet(getvariable('linesman_reads'), hive_partitioning = false, union_by_name = true, filename = true)
  UNION ALL BY NAME
  SELECT NULL::UBIGINT AS seq, NULL::TIMESTAMPTZ AS ts, NULL::VARCHAR AS sport, NULL::VARCHAR AS bookmaker,
    NULL::VARCHAR AS record_id
  WHERE false
) AS rows
JOIN linesman_files AS files ON files.path = rows.filename AND files.of_table = 'reads'
JOIN linesman_publication(t) AS publication ON publication.lineage = files.lineage AND rows.seq <= publication.seq;

CREATE OR REPLACE TEMP MACRO linesman_scores_rows(t) AS TABLE
SELECT rows.*
FROM (
  SELECT *
  FROM read_parquet(getvariable('linesman_scores'), hive_partitioning = false, union_by_name = true, filename = true)
  UNION ALL BY NAME
  SELECT NULL::UBIGINT AS seq, NULL::BOOLEAN AS shown, NULL::VARCHAR AS event_id, NULL::VARCHAR AS status,
    NULL::BIGINT AS home_score, NULL::BIGINT AS away_score, NULL::VARCHAR AS winner, NULL::TIMESTAMPTZ AS updated_at,
    NULL::STRUCT(number INTEGER, home INTEGER, away INTEGER)[] AS periods,
    NULL::STRUCT(name VARCHAR, rounds INTEGER[])[] AS leaders
  WHERE false
) AS rows
JOIN linesman_files AS files ON files.path = rows.filename AND files.of_table = 'scores'
JOIN linesman_publication(t) AS publication ON publication.lineage = files.lineage AND rows.seq <= publication.seq;

-- Events that are listed.
CREATE OR REPLACE TEMP MACRO linesman_listed(t) AS TABLE
SELECT rows.*
FROM (
  SELECT *
  FROM read_parquet(getvariable('linesman_events'), hive_partitioning = false, union_by_name = true, filename = true)
  UNION ALL BY NAME
  SELECT NULL::UBIGINT AS seq, NULL::VARCHAR AS sport, NULL::VARCHAR AS event_id, NULL::VARCHAR AS what,
    NULL::VARCHAR AS competition, NULL::VARCHAR AS title, NULL::VARCHAR AS home, NULL::VARCHAR AS away,
    NULL::TIMESTAMPTZ AS commence_time, NULL::VARCHAR AS status
  WHERE false
) AS rows
JOIN linesman_files AS files ON files.path = rows.filename AND files.of_table = 'events'
JOIN linesman_publication(t) AS publication ON publication.lineage = files.lineage AND rows.seq <= publication.seq
QUALIFY row_number() OVER (PARTITION BY rows.event_id ORDER BY rows.seq DESC) = 1
  AND rows.what NOT IN ('removed', 'merged');

CREATE OR REPLACE TEMP MACRO odds_at(t) AS TABLE
WITH quotes AS MATERIALIZED (
  SELECT * FROM linesman_odds_rows(t)
), shown AS MATERIALIZED (
  SELECT * FROM quotes WHERE shown
  QUALIFY rank() OVER (PARTITION BY record_id ORDER BY seq DESC) = 1 AND outcomes > 0
), reads AS MATERIALIZED (
  SELECT * FROM linesman_reads_rows(t)
), records AS (
  -- Rows not caused by a quote contain their freshness at that time: their confirmation may be in an earlier lineage.
  SELECT DISTINCT record_id, sport, bookmaker, seq, ts, coalesce(last_update, ts) AS fresh_at, beat_seen FROM shown
), confirmed AS (
  SELECT record_id, max(seq) AS seq, arg_max(ts, seq) AS ts FROM reads WHERE record_id IS NOT NULL GROUP BY record_id
), sources AS (
  SELECT sport, bookmaker, min(seq) AS seq
  FROM (SELECT sport, bookmaker, seq FROM quotes UNION ALL SELECT sport, bookmaker, seq FROM reads)
  WHERE sport IS NOT NULL
  GROUP BY sport, bookmaker
), beats AS (
  -- A heartbeat confirms the markets open at its time; one for all sports, those for which the bookmaker had prices.
  SELECT sources.sport, sources.bookmaker, reads.seq,
    max(reads.ts) OVER (PARTITION BY sources.sport, sources.bookmaker ORDER BY reads.seq) AS beat_at
  FROM reads
  JOIN sources ON sources.bookmaker = reads.bookmaker
    AND (reads.sport = sources.sport OR (reads.sport IS NULL AND reads.seq > sources.seq))
  WHERE reads.record_id IS NULL
), newest AS (
  SELECT sport, bookmaker, max(beat_at) AS beat_at FROM beats GROUP BY sport, bookmaker
), seen AS (
  SELECT records.*, coalesce(records.beat_seen, beats.beat_at) AS beat
  FROM records
  ASOF LEFT JOIN beats
    ON beats.sport = records.sport AND beats.bookmaker = records.bookmaker AND records.seq > beats.seq
), fresh AS (
  SELECT seen.record_id, seen.fresh_at, CASE WHEN confirmed.seq > seen.seq THEN confirmed.ts ELSE seen.ts END AS ts,
    CASE WHEN seen.beat IS NULL OR newest.beat_at > seen.beat THEN newest.beat_at END AS beat_at
  FROM seen
  LEFT JOIN confirmed USING (record_id)
  LEFT JOIN newest ON newest.sport = seen.sport AND newest.bookmaker = seen.bookmaker
)
SELECT shown.record_id AS id, shown.sport AS sport_key, shown.event_id, shown.bookmaker, shown.market, shown.pairing,
  date_trunc('second', greatest(fresh.ts, fresh.fresh_at, coalesce(fresh.beat_at, fresh.ts))) AS last_update,
  shown.n, shown.name, shown.decimal, shown.american, shown.point, shown.quoted, shown.num, shown.den
FROM shown
JOIN fresh USING (record_id);

CREATE OR REPLACE TEMP MACRO scores_at(t) AS TABLE
WITH scores AS (
  SELECT * FROM linesman_scores_rows(t) WHERE shown
  QUALIFY row_number() OVER (PARTITION BY event_id ORDER BY seq DESC) = 1
)
SELECT listed.event_id, listed.sport AS sport_key, coalesce(scores.status, listed.status) AS status,
  coalesce(listed.home, 'TBD') AS home_team, coalesce(listed.away, 'TBD') AS away_team,
  scores.home_score, scores.away_score,
  -- For a field: the rounds of the leader and the runner-up that both have played.
  coalesce(
    [{'number': round::INTEGER, 'home_score': scores.leaders[1].rounds[round],
      'away_score': scores.leaders[2].rounds[round]}
     FOR round IN range(1, 1 + least(len(scores.leaders[1].rounds), len(scores.leaders[2].rounds)))
     IF len(scores.leaders) >= 2], [])
  || coalesce(
    [{'number': period.number, 'home_score': period.home, 'away_score': period.away} FOR period IN scores.periods],
    []) AS periods,
  date_trunc('second', scores.updated_at) AS updated_at,
  CASE WHEN listed.sport IN ({bouts}) AND scores.status = 'final'
    THEN CASE scores.winner WHEN 'home' THEN listed.home WHEN 'away' THEN listed.away END END AS winner
FROM linesman_listed(t) AS listed
LEFT JOIN scores ON scores.event_id = listed.event_id;

CREATE OR REPLACE TEMP MACRO events_at(t) AS TABLE
WITH offered AS (
  SELECT event_id, list_sort(list(DISTINCT market)) AS markets FROM odds_at(t) GROUP BY event_id
)
SELECT listed.event_id AS id, listed.sport AS sport_key, listed.title, listed.competition,
  date_trunc('second', listed.commence_time) AS commence_time,
  CASE WHEN listed.title IS NULL THEN listed.home END AS home_team,
  CASE WHEN listed.title IS NULL THEN listed.away END AS away_team,
  listed.status, coalesce(offered.markets, []) AS markets
FROM linesman_listed(t) AS listed
LEFT JOIN offered ON offered.event_id = listed.event_id;
