-- reap: jobs of vanished workers wait again, or end as crashed after their last attempt; waiting jobs that nobody wants any
-- more, the oldest first, are dropped.
--
-- ARGV: keep_ms, max_attempts, limit (of each kind), expired leases too (0 or 1), lease_ms.
-- Answer: requeued, crashed, dropped, whether there may be more (0 or 1).

local keep, max_attempts, limit, leases_too = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local LONGEST_LEASE_MS = 600000 -- the setting allows no more
local again, crashed, dropped = 0, 0, 0
local keys = {}
may_grow()
-- Our clock is a wall clock. After it was set back, a lease that nobody renews would end by as much too late.
local beyond = string.format('(%.0f', now + LONGEST_LEASE_MS)
for _, key in ipairs(redis.call('ZRANGEBYSCORE', root .. 'leases', beyond, '+inf', 'LIMIT', 0, limit)) do
  redis.call('ZADD', root .. 'leases', string.format('%.0f', now + tonumber(ARGV[5])), key)
end
if leases_too == '1' then
  keys = redis.call('ZRANGEBYSCORE', root .. 'leases', '-inf', string.format('%.0f', now), 'LIMIT', 0, limit)
end
for _, key in ipairs(keys) do
  local attempt = redis.call('HGET', root .. 'job:' .. key, 'attempt')
  redis.call('ZREM', root .. 'leases', key)
  if not attempt then
    forget(key)
    dropped = dropped + 1
  elseif tonumber(attempt) < max_attempts then
    if requeue(key, attempt, keep) then
      again = again + 1
    else
      dropped = dropped + 1
    end
  else
    for _, subscriber in ipairs(redis.call('HKEYS', root .. 'subs:' .. key)) do
      deliver(subscriber, key, 'c', keep)
    end
    forget(key)
    crashed = crashed + 1
  end
end

local unwanted = 0
for _, key in ipairs(redis.call('ZRANGE', root .. 'waiting', 0, limit - 1)) do
  local job = redis.call('HMGET', root .. 'job:' .. key, 'line', 'till')
  if not job[1] then
    redis.call('ZREM', root .. 'waiting', key)
    unwanted = unwanted + 1
  elseif tonumber(job[2]) <= now then
    leave(key, job[1])
    forget(key)
    unwanted = unwanted + 1
  end
end

wake(again)
local more = #keys == limit or unwanted == limit
return { again, crashed, dropped + unwanted, more and 1 or 0 }
