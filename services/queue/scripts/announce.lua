-- announce: a worker says that it is there, and what it is.
--
-- ARGV: worker, info, ttl_ms; 0 withdraws it.
-- Answer: 1.

local worker, info, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
local all = root .. 'workers'
may_grow()
if ttl > 0 then
  redis.call('SET', root .. 'worker:' .. worker, info, 'PX', ttl)
  redis.call('ZADD', all, string.format('%.0f', now + ttl), worker)
  outlive(all, ttl)
else
  redis.call('DEL', root .. 'worker:' .. worker)
  redis.call('ZREM', all, worker)
end
redis.call('ZREMRANGEBYSCORE', all, '-inf', string.format('%.0f', now))
return 1
