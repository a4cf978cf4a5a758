-- unsubscribe: a subscriber no longer wants keys. A job that nobody else wants leaves the queue, or its worker is told to
-- stop; from then on its token is stale.
--
-- ARGV: subscriber, keep_ms, limit, then the keys; without keys, up to limit of those still pending.
-- Answer: removed, stopped, shared (jobs that go on for others), keys still pending.

local subscriber, keep, limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local pending = root .. 'pending:' .. subscriber
local keys = {}
may_grow()
if #ARGV == 3 then
  keys = redis.call('SPOP', pending, limit)
else
  for i = 4, #ARGV do
    if redis.call('SREM', pending, ARGV[i]) == 1 then
      keys[#keys + 1] = ARGV[i]
    end
  end
end

local removed, stopped, shared = 0, 0, 0
for _, key in ipairs(keys) do
  local subs = root .. 'subs:' .. key
  redis.call('HDEL', subs, subscriber)
  local job = redis.call('HMGET', root .. 'job:' .. key, 'line', 'floor', 'seq', 'token', 'worker')
  local line = job[1]
  if line and redis.call('EXISTS', subs) == 1 then
    shared = shared + 1
    if line ~= '' then
      replace(key, line, job[2], job[3], keep)
    end
  elseif line then
    redis.call('DEL', root .. 'job:' .. key)
    if line ~= '' then
      removed = removed + 1
      leave(key, line)
    else
      stopped = stopped + 1
      redis.call('ZREM', root .. 'leases', key)
      local cancels = root .. 'cancels:' .. job[5]
      redis.call('XADD', cancels, '*', 't', job[4])
      outlive(cancels, keep)
    end
  end
end
wake(0)
return { removed, stopped, shared, redis.call('SCARD', pending) }
