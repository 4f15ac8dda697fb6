-- H12 in SQL, over the macros of `linesman history sql`: the prices in the last publication before each event started.
-- `seq` orders rows of a lineage; a lost or restored log begins another one.
WITH publications AS (
  SELECT published_at
  FROM read_parquet(getvariable('linesman_epochs'), hive_partitioning = false)
), events AS (
  SELECT rows.*, files.lineage, rows.what IN ('removed', 'merged') AS gone, rows.status IN ('live', 'final') AS begun
  FROM read_parquet(getvariable('linesman_events'), hive_partitioning = false, union_by_name = true, filename = true)
    AS rows
  JOIN linesman_files AS files ON files.path = rows.filename
), newest AS (
  SELECT * FROM events
  QUALIFY row_number() OVER (PARTITION BY event_id ORDER BY lineage DESC, seq DESC) = 1
), shown_events AS (
  SELECT *, lag(begun) OVER told AS was_begun
  FROM events WHERE NOT gone
  WINDOW told AS (PARTITION BY event_id ORDER BY lineage, seq)
), last_shown AS (
  SELECT * FROM shown_events
  QUALIFY row_number() OVER (PARTITION BY event_id ORDER BY lineage DESC, seq DESC) = 1
), live AS (
  -- The first publication that shows it as live or final, after the last that does not.
  SELECT turned.event_id, turned.published_at AS start, 'live' AS start_by
  FROM shown_events AS turned
  JOIN last_shown ON last_shown.event_id = turned.event_id AND last_shown.begun
  WHERE turned.begun AND turned.was_begun IS NOT TRUE
  QUALIFY row_number() OVER (PARTITION BY turned.event_id ORDER BY turned.lineage DESC, turned.seq DESC) = 1
), corrected AS (
  -- The last publication that takes back that it is live.
  SELECT event_id, published_at FROM shown_events
  WHERE was_begun AND NOT begun
  QUALIFY row_number() OVER (PARTITION BY event_id ORDER BY lineage DESC, seq DESC) = 1
), announced AS (
  -- Its announced time as last published, where that has come while it was shown, and no score says more.
  SELECT event_id, last_shown.commence_time AS start, 'commence_time' AS start_by
  FROM last_shown
  JOIN newest USING (event_id)
  LEFT JOIN corrected USING (event_id)
  WHERE NOT last_shown.begun
    AND last_shown.commence_time <= (SELECT max(published_at) FROM publications)
    AND (corrected.published_at IS NULL OR last_shown.commence_time > corrected.published_at)
    AND NOT (newest.gone AND newest.published_at <=
      (SELECT min(published_at) FROM publications WHERE published_at >= last_shown.commence_time))
), starts AS (
  SELECT *, (SELECT max(published_at) FROM publications WHERE published_at < start) AS last_before
  FROM (FROM live UNION ALL FROM announced)
), shown AS (
  SELECT odds.*, files.lineage, starts.start, starts.start_by, starts.last_before
  FROM read_parquet(getvariable('linesman_odds'), hive_partitioning = false, union_by_name = true, filename = true)
    AS odds
  JOIN linesman_files AS files ON files.path = odds.filename
  JOIN starts USING (event_id)
  WHERE odds.shown AND odds.published_at < starts.start
), priced AS (
  SELECT * FROM shown WHERE outcomes > 0
  QUALIFY rank() OVER (PARTITION BY record_id ORDER BY published_at DESC, lineage DESC, seq DESC) = 1
), changes AS (
  SELECT record_id, outcomes, published_at, lineage, seq, list((name, decimal, point) ORDER BY name, point) AS prices
  FROM shown GROUP BY ALL
), since AS (
  -- A lineage begins with rows for all that it shows, also where the one before it showed the same.
  SELECT record_id, max(published_at) AS published_at
  FROM (FROM changes QUALIFY prices IS DISTINCT FROM lag(prices) OVER (
    PARTITION BY record_id ORDER BY published_at, lineage, seq))
  WHERE outcomes > 0 GROUP BY record_id
), withdrawn AS (
  SELECT record_id, seq, reason, last_update FROM shown
  QUALIFY rank() OVER (PARTITION BY record_id ORDER BY published_at DESC, lineage DESC, seq DESC) = 1 AND outcomes = 0
)
SELECT priced.record_id, priced.name, priced.decimal, priced.start::TIMESTAMP AS start, priced.start_by,
  withdrawn.record_id IS NULL AS active, withdrawn.reason, withdrawn.last_update::TIMESTAMP AS last_update,
  since.published_at::TIMESTAMP AS published_at, priced.last_before::TIMESTAMP AS last_before
FROM priced
JOIN since USING (record_id)
LEFT JOIN withdrawn USING (record_id)
ORDER BY priced.record_id, priced.name;
