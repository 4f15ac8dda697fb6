-- H12 in SQL, over the macros of `linesman history sql`: the prices in the last publication before each event started.
WITH publications AS (
  SELECT published_at, lag(published_at) OVER (ORDER BY published_at) AS before
  FROM read_parquet(getvariable('linesman_epochs'), hive_partitioning = false)
), events AS (
  SELECT * FROM read_parquet(getvariable('linesman_events'), hive_partitioning = false)
), live AS (
  -- The first publication that shows it as live or final.
  SELECT event_id, min(published_at) AS start, 'live' AS start_by
  FROM events WHERE status IN ('live', 'final') GROUP BY event_id
), announced AS (
  -- Its announced time as last published, where that has come and no score says more.
  SELECT event_id, arg_max(commence_time, seq) AS start, 'commence_time' AS start_by
  FROM events
  WHERE commence_time IS NOT NULL AND event_id NOT IN (SELECT event_id FROM live)
  GROUP BY event_id
  HAVING start <= (SELECT max(published_at) FROM publications)
), starts AS (
  SELECT *, (SELECT max(published_at) FROM publications WHERE published_at < start) AS last_before
  FROM (FROM live UNION ALL FROM announced)
), shown AS (
  SELECT odds.*, starts.start, starts.start_by, starts.last_before
  FROM read_parquet(getvariable('linesman_odds'), hive_partitioning = false, union_by_name = true) AS odds
  JOIN starts USING (event_id)
  WHERE odds.shown AND odds.published_at < starts.start
), priced AS (
  SELECT * FROM shown WHERE outcomes > 0
  QUALIFY rank() OVER (PARTITION BY record_id ORDER BY seq DESC) = 1
), withdrawn AS (
  SELECT record_id, seq, reason, last_update FROM shown
  QUALIFY rank() OVER (PARTITION BY record_id ORDER BY seq DESC) = 1 AND outcomes = 0
)
SELECT priced.record_id, priced.name, priced.decimal, priced.start::TIMESTAMP AS start, priced.start_by,
  withdrawn.record_id IS NULL AS active, withdrawn.reason, withdrawn.last_update::TIMESTAMP AS last_update,
  priced.published_at::TIMESTAMP AS published_at, priced.last_before::TIMESTAMP AS last_before
FROM priced
LEFT JOIN withdrawn USING (record_id)
ORDER BY priced.record_id, priced.name;
