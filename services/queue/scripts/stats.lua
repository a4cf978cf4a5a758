-- stats: the size of things; reads only, none of it grows with the queue beyond O(log n).
--
-- ARGV: none.
-- Answer: depth, age of the oldest waiting job (ms), running, overdue, levels, workers, checks completed so far,
--         the server's run id.

local oldest = redis.call('ZRANGE', root .. 'waiting', 0, 0, 'WITHSCORES')
local age = oldest[2] and math.max(0, now - tonumber(oldest[2]) / 1000) or 0
local at = string.format('%.0f', now)
return {
  redis.call('ZCARD', root .. 'waiting'),
  age,
  redis.call('ZCARD', root .. 'leases'),
  redis.call('ZCOUNT', root .. 'leases', '-inf', at),
  redis.call('ZCARD', root .. 'levels'),
  redis.call('ZCOUNT', root .. 'workers', '(' .. at, '+inf'),
  tonumber(redis.call('HGET', root .. 'clock', 'done') or 0),
  string.match(redis.call('INFO', 'server'), 'run_id:(%w+)'),
}
